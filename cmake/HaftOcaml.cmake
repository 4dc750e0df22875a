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
    foreach(other IN ITEMS haft-io haft-http haft-lwt haft-posix)
      if(other IN_LIST arg_PACKAGES)
        string(REPLACE "-" "_" library "${other}")
        list(APPEND needs ${library}_package "${packages}/${other}/${library}.cmxa")
        if(TARGET ${library}_stubs)
          list(APPEND needs "${packages}/${other}/lib${library}_stubs.a")
        endif()
      endif()
    endforeach()
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

# haft_ocaml_library(PACKAGE UNITS name... [STUBS file...] [HEADERS file...] [LIBS target...] [PACKAGES name...]
#                    [WHOLE target] [LINK flag...] [NEEDS target...] DESCRIPTION text)
# A package of native code beside `haft`, in its own folder of HAFT_OCAML_PACKAGES, built by the target
# PACKAGE_package, with `_` for `-`. UNITS are in the order of their dependencies; those that have a .mli are
# compiled with it. The archives LIBS of C lie in the package; what else they are linked with is their HAFT_LINK, and
# LINK. WHOLE: an archive of which all is linked, wherever the package is named.
function(haft_ocaml_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESCRIPTION;WHOLE" "UNITS;STUBS;HEADERS;LIBS;LINK;PACKAGES;NEEDS")
  string(REPLACE "-" "_" library "${name}")
  set(package "${HAFT_OCAML_PACKAGES}/${name}")
  file(MAKE_DIRECTORY "${package}")
  list(JOIN arg_PACKAGES " " HAFT_PACKAGE_REQUIRES)
  set(HAFT_PACKAGE_DESCRIPTION "${arg_DESCRIPTION}")
  set(HAFT_PACKAGE_LIBRARY "${library}")
  # (ocamlfind links the library of threads.posix for -thread alone. A program that uses no thread of its own need
  # not give that.)
  set(HAFT_PACKAGE_THREADS)
  if("threads.posix" IN_LIST arg_PACKAGES)
    set(HAFT_PACKAGE_THREADS "+threads/threads.cmxa ")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/package.META.in" "${package}/META" @ONLY)

  set(stubs)
  set(linked)
  if(arg_STUBS)
    set(stubs "${package}/lib${library}_stubs.a")
    set(linked -cclib "-l${library}_stubs")
    add_library(${library}_stubs STATIC ${arg_STUBS})
    set_target_properties(${library}_stubs PROPERTIES ARCHIVE_OUTPUT_DIRECTORY "${package}" POSITION_INDEPENDENT_CODE ON)
    target_include_directories(${library}_stubs PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
    target_include_directories(${library}_stubs SYSTEM PUBLIC "${HAFT_OCAML_HEADERS}")
    target_link_libraries(${library}_stubs PUBLIC ${arg_LIBS})
    list(APPEND arg_NEEDS ${library}_stubs)
  endif()
  set(archives)
  set(flags)
  if(arg_WHOLE)
    set(archives "$<TARGET_FILE:${arg_WHOLE}>")
    list(PREPEND linked -cclib -Wl,--whole-archive -cclib "-l$<TARGET_FILE_BASE_NAME:${arg_WHOLE}>"
      -cclib -Wl,--no-whole-archive)
    set(flags -linkall)
    list(APPEND arg_NEEDS ${arg_WHOLE})
  endif()
  foreach(target IN LISTS arg_LIBS)
    list(APPEND archives "$<TARGET_FILE:${target}>")
    list(APPEND linked -cclib "-l$<TARGET_FILE_BASE_NAME:${target}>")
  endforeach()
  foreach(target IN LISTS arg_LIBS)
    get_target_property(others ${target} HAFT_LINK)
    separate_arguments(others UNIX_COMMAND "${others}")
    foreach(other IN LISTS others arg_LINK)
      list(APPEND linked -cclib "${other}")
    endforeach()
  endforeach()

  set(sources)
  set(copied ${arg_HEADERS})
  set(implementations)
  set(objects)
  foreach(unit IN LISTS arg_UNITS)
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${unit}.mli")
      list(APPEND sources ${unit}.mli)
      list(APPEND copied ${unit}.mli)
      list(APPEND objects "${package}/${unit}.mli" "${package}/${unit}.cmti")
    endif()
    list(APPEND sources ${unit}.ml)
    list(APPEND copied ${unit}.ml)
    list(APPEND implementations ${unit}.cmx)
    foreach(extension ml cmi cmt cmx)
      list(APPEND objects "${package}/${unit}.${extension}")
    endforeach()
  endforeach()
  set(made "${package}/${library}.cmxa" "${package}/${library}.a")
  set(warnings -w +a-4-9-40..42-44-45-70)
  if(HAFT_WARNINGS_AS_ERRORS)
    list(APPEND warnings -warn-error +a)
  endif()
  list(JOIN arg_PACKAGES "," packages)
  list(TRANSFORM copied PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE files)
  add_custom_command(
    OUTPUT ${made} ${objects}
    COMMAND "${CMAKE_COMMAND}" -E copy ${files} ${archives} "${package}"
    COMMAND "${CMAKE_COMMAND}" -E env "OCAMLPATH=${HAFT_OCAML_PACKAGES}:$ENV{OCAMLPATH}" "${HAFT_OCAMLFIND}"
      ocamlopt -g -bin-annot -inline 100 ${warnings} -thread -package "${packages}" -I . -c ${sources}
    COMMAND "${HAFT_OCAMLFIND}" ocamlopt -a ${flags} -o ${library}.cmxa ${implementations} ${linked}
    DEPENDS ${files} ${arg_LIBS} ${arg_NEEDS}
    WORKING_DIRECTORY "${package}"
    COMMENT "Compiling the OCaml package ${name}"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${library}_package ALL DEPENDS ${made} ${objects})
  set_property(TARGET ${library}_package PROPERTY HAFT_PACKAGE "${package}")
  install(FILES ${made} ${objects} "${package}/META" ${stubs} ${archives}
    DESTINATION "${HAFT_OCAML_FOLDER}/${name}")
endfunction()
