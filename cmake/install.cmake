# SPDX-License-Identifier: BSD-3-Clause
# What `make install PREFIX=` puts where.
install(TARGETS tutti tutti_static tutti_train tutti_train_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The files of pkg-config tell the prefix from where they are themselves: `cmake --install DIR --prefix ELSEWHERE` and a tree that was
# moved need no other ones.
file(RELATIVE_PATH TUTTI_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" TUTTI_PC_TO_PREFIX "${TUTTI_PC_TO_PREFIX}")
foreach(pc IN ITEMS tutti tutti-train)
    configure_file(cmake/${pc}.pc.in ${PROJECT_BINARY_DIR}/${pc}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
