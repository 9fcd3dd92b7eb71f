# SPDX-License-Identifier: BSD-3-Clause
# Run an example under `tutti run`; it must end with 0, and every rank must have said its line.
#
#     cmake -DTUTTI=... -DPROGRAM=... -DRANKS=3 "-DEXPECTED=rank 0 is here|..." -P check.cmake
#
# EXPECTED has a whole line for each rank in turn, "|" between them; "-": it says nothing. OPTIONS are tutti run's, ARGS the
# program's; processes that are started later have lines behind the ranks'.
execute_process(COMMAND ${TUTTI} run --standalone --nproc-per-node=${RANKS} ${OPTIONS} ${PROGRAM} ${ARGS}
                OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
if(NOT code EQUAL 0)
    message(FATAL_ERROR "ended with ${code}\n${out}${err}")
endif()
string(REPLACE "|" ";" expected "${EXPECTED}")
set(rank 0)
foreach(line IN LISTS expected)
    if(line STREQUAL "-")
        math(EXPR rank "${rank} + 1")
        continue()
    endif()
    string(FIND "\n${out}" "\n[default${rank}]:${line}\n" at)
    if(at EQUAL -1)
        message(FATAL_ERROR "rank ${rank} did not say '${line}'\n${out}${err}")
    endif()
    math(EXPR rank "${rank} + 1")
endforeach()
if(rank LESS RANKS)
    message(FATAL_ERROR "${rank} lines are expected of ${RANKS} ranks")
endif()
