# SPDX-License-Identifier: BSD-3-Clause
# How everything is compiled. C11 with the GNU feature set of libc; hidden symbols; no contraction of
# a*b+c into one rounding, because the same bits on all ranks and builds are part of the contract.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Wvla -Wwrite-strings
                    -Wformat=2 -fno-common -ffp-contract=off -fstack-protector-strong)
add_compile_options($<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
                    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
                    $<$<COMPILE_LANGUAGE:C>:-Wold-style-definition>)
if(TUTTI_WERROR)
    add_compile_options(-Werror)
endif()
if(TUTTI_SANITIZE)
    add_compile_options(-fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${TUTTI_SANITIZE})
    if(TUTTI_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=all)
    endif()
endif()
if(TUTTI_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize=pointer-overflow) # clang minds NULL + 0
    if(NOT TUTTI_FUZZ_COMPARES)
        add_compile_options(-fno-sanitize-coverage=trace-cmp)
    endif()
endif()
if(TUTTI_COVERAGE)
    add_compile_options(--coverage)
    add_link_options(--coverage)
endif()

# What makes a mistake harder to use: calls into libc know the sizes of their buffers, stacks are guarded and probed, jumps
# and returns land where they may (CET, on aarch64 BTI), tables that the loader has filled are closed, programs lie anywhere,
# no memory is both written and run. The test `hardening` reads the built files. Sanitizers look at more than all of this, and
# do not go with the first.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C CXX)
set(CMAKE_REQUIRED_FLAGS -Werror) # clang takes what it has no use for with a warning
foreach(flag -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "TUTTI_HAS${flag}" known)
    check_c_compiler_flag(${flag} ${known})
    if(${known})
        add_compile_options(${flag})
    endif()
endforeach()
unset(CMAKE_REQUIRED_FLAGS)
string(TOUPPER "CMAKE_C_FLAGS_${CMAKE_BUILD_TYPE}" flags_of_type)
if(NOT TUTTI_SANITIZE AND NOT TUTTI_COVERAGE AND "${CMAKE_C_FLAGS} ${${flags_of_type}}" MATCHES "-O[123s]")
    set(TUTTI_FORTIFIED ON)
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)

# Calls through pointers reach functions of their own type, or end the process: docs/decisions/0021-calls-through-pointers.md.
# Objects are bitcode then, which the linker compiles: which functions have a type is known when all of a library or a program is there.
if(TUTTI_CFI)
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "TUTTI_CFI needs clang, and this is ${CMAKE_C_COMPILER_ID}: cmake --preset cfi")
    endif()
    add_library(tutti_checked_calls STATIC ${CMAKE_CURRENT_LIST_DIR}/checked_calls.c)
    set(CMAKE_AR ${CMAKE_C_COMPILER_AR})
    set(CMAKE_RANLIB ${CMAKE_C_COMPILER_RANLIB})
    add_compile_options(-flto=thin -fsanitize=cfi-icall -fsanitize-cfi-cross-dso)
    target_compile_options(tutti_checked_calls PRIVATE -fno-lto -fno-sanitize=cfi-icall -fno-sanitize-cfi-cross-dso -Wno-missing-prototypes)
    add_link_options(-flto=thin -fuse-ld=lld -Wl,--thinlto-cache-dir=${PROJECT_BINARY_DIR}/lto-cache)
    link_libraries(tutti_checked_calls)
    # Its tables of functions and landing places do not go together: with both, clang 14 makes entries of 16 bytes and counts them as
    # 8, and calls end between them. Where types are looked at nothing is lost without landing places.
    if(TUTTI_HAS_fcf_protection_full)
        add_compile_options(-fcf-protection=return)
    endif()
endif()
