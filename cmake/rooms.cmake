# SPDX-License-Identifier: BSD-3-Clause
# The three functions that a room's CMakeLists.txt calls.
#
#   tutti_room(NAME [TRAIN] SOURCES ... [LIBS ...])   one object library; goes into libtutti, or with
#                                                     TRAIN into libtutti_train
#   tutti_test(NAME [SOURCES ...] [LIBS ...] [LIMIT s] [COST s] [TRAIN] [LABELS ...])
#                                                     cmocka test NAME.c beside the code
#   tutti_ranks_test(NAME [LIMIT s] [COST s] [TRAIN] [ARGS ...] [LABELS ...])  tests/ranks/NAME.c: real processes
#
# LIMIT is when it is ended, COST about how long it takes, if that is long: those start first.

function(tutti_room name)
    cmake_parse_arguments(R "TRAIN" "" "SOURCES;LIBS" ${ARGN})
    add_library(room_${name} OBJECT ${R_SOURCES})
    target_include_directories(room_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(room_${name} PUBLIC ${R_LIBS})
    if(R_TRAIN)
        target_include_directories(room_${name} PRIVATE ${PROJECT_SOURCE_DIR}/train)
        set_property(GLOBAL APPEND PROPERTY TUTTI_TRAIN_ROOMS ${name})
    else()
        target_include_directories(room_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
        set_property(GLOBAL APPEND PROPERTY TUTTI_ROOMS ${name})
    endif()
endfunction()

# Environment of every test: nothing of the caller's job leaks in.
set(TUTTI_TEST_ENV "OMP_NUM_THREADS=1" "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"
    "UBSAN_OPTIONS=print_stacktrace=1" "ASAN_OPTIONS=detect_leaks=1"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp")

# A thread sanitizer makes a test that computes ten times as slow.
set(TUTTI_LIMIT_FACTOR 1)
if(TUTTI_SANITIZE STREQUAL "thread")
    set(TUTTI_LIMIT_FACTOR 4)
endif()

function(tutti_add_test_program target train)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                               ${PROJECT_SOURCE_DIR}/train ${PROJECT_SOURCE_DIR}/tests)
    if(train)
        target_link_libraries(${target} PRIVATE tutti_train_static)
    endif()
    target_link_libraries(${target} PRIVATE tutti_static PkgConfig::CMOCKA)
endfunction()

function(tutti_test name)
    if(NOT BUILD_TESTING)
        return()
    endif()
    cmake_parse_arguments(T "TRAIN" "LIMIT;COST" "SOURCES;LIBS;LABELS" ${ARGN})
    if(NOT T_LIMIT)
        set(T_LIMIT 60)
    endif()
    if(NOT T_COST)
        set(T_COST 0)
    endif()
    math(EXPR T_LIMIT "${T_LIMIT} * ${TUTTI_LIMIT_FACTOR}")
    add_executable(${name} ${name}.c ${T_SOURCES})
    tutti_add_test_program(${name} "${T_TRAIN}")
    target_link_libraries(${name} PRIVATE ${T_LIBS})
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${T_LIMIT} SKIP_RETURN_CODE 77
                         LABELS "unit;${T_LABELS}" ENVIRONMENT "${TUTTI_TEST_ENV}" COST "${T_COST}")
endfunction()

function(tutti_ranks_test name)
    if(NOT BUILD_TESTING)
        return()
    endif()
    cmake_parse_arguments(T "TRAIN" "LIMIT;COST" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
    if(NOT T_LIMIT)
        set(T_LIMIT 120)
    endif()
    if(NOT T_COST)
        set(T_COST 0)
    endif()
    math(EXPR T_LIMIT "${T_LIMIT} * ${TUTTI_LIMIT_FACTOR}")
    add_executable(${name} ${name}.c ${T_SOURCES})
    tutti_add_test_program(${name} "${T_TRAIN}")
    target_link_libraries(${name} PRIVATE tutti_harness ${T_LIBS})
    add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${T_LIMIT} SKIP_RETURN_CODE 77
                         LABELS "ranks;${T_LABELS}" ENVIRONMENT "${TUTTI_TEST_ENV}" COST "${T_COST}")
endfunction()
