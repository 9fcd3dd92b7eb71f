# SPDX-License-Identifier: BSD-3-Clause
# What we stand on (docs/decisions/0001-dependencies.md). `make deps` installs all of it on Debian.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto>=3)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_search_module(MSGPACK REQUIRED IMPORTED_TARGET msgpack msgpack-c)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(CBLAS REQUIRED IMPORTED_TARGET openblas)
if(BUILD_TESTING)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
find_path(UTHASH_INCLUDE_DIR uthash.h REQUIRED)
