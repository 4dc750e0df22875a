# SPDX-License-Identifier: MIT
# Programs in OCaml, for tests, examples and the semantics. Needs the targets haft_ocaml_package and
# haft_effect_syntax for programs that use what they build.
find_program(HAFT_OCAMLFIND ocamlfind)
mark_as_advanced(HAFT_OCAMLFIND)

# haft_ocaml_program(NAME SOURCES file... [STUBS file...] [PACKAGES name...] [FLAGS flag...] [SYNTAX]
#                    [TARGET target])
# A program NAME of this build folder, built by the target (ocaml_program_NAME unless it is given).
# SOURCES are in the order of their dependencies. STUBS are its functions in C; they make the library
# TARGET_stubs. SYNTAX: the sources use the effect syntax.
function(haft_ocaml_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SYNTAX" "TARGET" "SOURCES;STUBS;PACKAGES;FLAGS")
  set(target "${arg_TARGET}")
  if(NOT target)
    set(target ocaml_program_${name})
  endif()
  # The compiler leaves its files beside the sources, so it gets copies.
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}.build")
  file(MAKE_DIRECTORY "${folder}")
  set(files)
  set(sources)
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(file "${source}" ABSOLUTE)
    get_filename_component(base "${source}" NAME)
    list(APPEND files "${file}")
    list(APPEND sources "${base}")
  endforeach()

  set(needs)
  set(path "$ENV{OCAMLPATH}")
  if("haft" IN_LIST arg_PACKAGES)
    get_target_property(package haft_ocaml_package HAFT_PACKAGE)
    get_filename_component(packages "${package}" DIRECTORY)
    set(path "${packages}:${path}")
    list(APPEND needs haft_ocaml_package "${package}/haft.cmxa" "${package}/libhaft.a"
      "${package}/libhaft_ocaml.a")
  endif()
  set(syntax)
  if(arg_SYNTAX)
    get_target_property(preprocessor haft_effect_syntax HAFT_PROGRAM)
    list(JOIN HAFT_TEST_LAUNCHER " " launcher)
    set(syntax -pp "${launcher} ${preprocessor}")
    list(APPEND needs haft_effect_syntax "${preprocessor}")
  endif()
  set(stubs)
  if(arg_STUBS)
    execute_process(COMMAND "${HAFT_OCAMLFIND}" ocamlopt -where OUTPUT_VARIABLE headers
      OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    add_library(${target}_stubs STATIC ${arg_STUBS})
    target_include_directories(${target}_stubs SYSTEM PRIVATE "${headers}")
    target_link_libraries(${target}_stubs PRIVATE haft_static)
    set(stubs $<TARGET_FILE:${target}_stubs>)
    if("haft" IN_LIST arg_PACKAGES) # Again, for what only the stubs use.
      list(APPEND stubs -cclib -lhaft)
    endif()
    list(APPEND needs ${target}_stubs)
  endif()

  list(JOIN arg_PACKAGES "," package_list)
  add_custom_command(
    OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}"
    COMMAND "${CMAKE_COMMAND}" -E copy ${files} "${folder}"
    COMMAND "${CMAKE_COMMAND}" -E env "OCAMLPATH=${path}" "${HAFT_OCAMLFIND}" ocamlopt -g
      ${syntax} ${arg_FLAGS} -package "${package_list}" -linkpkg ${stubs} ${sources} -o "../${name}"
    DEPENDS ${files} ${needs}
    WORKING_DIRECTORY "${folder}"
    COMMENT "Compiling ${name}"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${target} ALL DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/${name}")
endfunction()
