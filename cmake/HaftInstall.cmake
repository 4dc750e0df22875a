# SPDX-License-Identifier: MIT
# The package files for find_package(haft) and pkg-config. Both find the prefix from where they
# themselves stand, so an installed tree can be moved.
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/haft")
install(EXPORT haft NAMESPACE haft:: FILE haft-targets.cmake DESTINATION "${package_folder}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/haft-config.cmake.in"
  "${PROJECT_BINARY_DIR}/haft-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/haft-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/haft-config.cmake"
  "${PROJECT_BINARY_DIR}/haft-config-version.cmake" DESTINATION "${package_folder}")

# The clang of Debian 12 has no probes there, and warns that it ignores the option.
set(HAFT_PROBING_FLAGS "")
if(HAFT_ARCH STREQUAL "aarch64")
  set(HAFT_PROBING_FLAGS " -Wno-unused-command-line-argument")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/haft.pc.in" "${PROJECT_BINARY_DIR}/haft.pc" @ONLY)
if(TARGET haft_split)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(HAFT_SPLIT_FLAGS " -maccumulate-outgoing-args")
  endif()
  get_target_property(wraps haft_split INTERFACE_LINK_OPTIONS)
  list(FILTER wraps INCLUDE REGEX "wrap")
  string(JOIN " " HAFT_SPLIT_WRAPS "" ${wraps})
  configure_file("${PROJECT_SOURCE_DIR}/cmake/haft-split.pc.in" "${PROJECT_BINARY_DIR}/haft-split.pc"
    @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/haft-split.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
install(FILES "${PROJECT_BINARY_DIR}/haft.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

configure_file("${PROJECT_SOURCE_DIR}/cmake/tell_paths.cmake.in" "${PROJECT_BINARY_DIR}/tell_paths.cmake" @ONLY)
install(SCRIPT "${PROJECT_BINARY_DIR}/tell_paths.cmake")

file(GLOB documents CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md"
  "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES ${documents} "${PROJECT_SOURCE_DIR}/docs/trace.svg" DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs")
# Files that the pages link to, where the links lead.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  PATTERN CMakeLists.txt EXCLUDE)
foreach(file IN ITEMS CONTRIBUTING.md bench/README.md bench/http/idle.svg bench/http/report.md bench/http/rising.svg bench/io/report.md compat/seff.h compat/cpp-effects/cpp-effects.h
    http/tests/http2_attacks.h http/tests/test_bodies.c http/tests/test_http2.c http/tests/test_proxy.c
    http/tests/test_refusals.c rust/haft/examples/stuck.rs tools/debug/tests/stuck.c tools/debug/tests/stuck.ml
    io/posix/include/haft/posix.h ocaml/syntax/README.md semantics/README.md)
  get_filename_component(folder "${file}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/${file}" DESTINATION "${CMAKE_INSTALL_DOCDIR}/${folder}")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/bench/figures.svg" "${PROJECT_SOURCE_DIR}/bench/report.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench")
