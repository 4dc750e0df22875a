# SPDX-License-Identifier: MIT
# How everything in this repository is compiled, and the functions that declare tests and examples.

# That of a project that Haft is a part of is the project's to choose.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Installed libraries lie in one folder, and find each other there.
set(CMAKE_INSTALL_RPATH "$ORIGIN")

# C frames need unwind tables and cleanup actions (-fexceptions): dropping a suspended fiber
# unwinds through them. Frame pointers let profilers walk from a fiber into its parents.
add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -fno-omit-frame-pointer
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  # gcc takes the base in Put{.value = 1} for a forgotten field.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-missing-field-initializers>
  $<$<COMPILE_LANGUAGE:C>:-fexceptions>)
if(HAFT_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
if(HAFT_SANITIZE)
  add_compile_options(-g -fsanitize=${HAFT_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HAFT_SANITIZE})
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(HAFT_ARCH x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(HAFT_ARCH aarch64)
else()
  message(FATAL_ERROR "Haft runs on x86-64 and AArch64 Linux, not on ${CMAKE_SYSTEM_PROCESSOR}")
endif()

# The name of this configuration. A test with the name in its NOT_IN does not run here.
set(HAFT_CONFIGURATION native)
if(HAFT_SANITIZE MATCHES "address|thread")
  set(HAFT_CONFIGURATION ${CMAKE_MATCH_0})
elseif(HAFT_VALGRIND)
  set(HAFT_CONFIGURATION valgrind)
elseif(CMAKE_CROSSCOMPILING)
  set(HAFT_CONFIGURATION emulator)
endif()

# haft_glob(RESULT PATTERN...): the files of this folder that match; C++ ones only where they can
# be compiled. New files are picked up by the next build.
function(haft_glob result)
  file(GLOB files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${ARGN})
  if(NOT CMAKE_CXX_COMPILER)
    list(FILTER files EXCLUDE REGEX "\\.cpp$")
  endif()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# Whether a NOT_IN names this build: by its configuration, by `repeats` if it is HAFT_BRIEF, by `quick` if it is
# HAFT_QUICK, or by `clang`, which leaves out what does not depend on the compiler.
function(haft_is_in result names)
  set(is_in OFF)
  if(HAFT_CONFIGURATION IN_LIST names OR (HAFT_BRIEF AND "repeats" IN_LIST names)
      OR (HAFT_QUICK AND "quick" IN_LIST names)
      OR (CMAKE_C_COMPILER_ID MATCHES Clang AND "clang" IN_LIST names))
    set(is_in ON)
  endif()
  set(${result} ${is_in} PARENT_SCOPE)
endfunction()

# Gives a test what all have: exit status 77 means that it cannot run here. Tests that could go on for
# as long as one likes are bounded by HAFT_CAMPAIGN=short|long in the environment of ctest.
function(haft_test_properties name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "TIMEOUT" "LABELS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 240)
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}"
    TIMEOUT ${arg_TIMEOUT}
    RUN_SERIAL ${arg_SERIAL}
    SKIP_RETURN_CODE 77
    ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1;${arg_ENVIRONMENT}")
endfunction()

# The C++ tests are C++20; in debug builds that run natively, and in those for an emulator, C++23
# without run-time type information and with the assertions of the standard library.
set(HAFT_STRICT_CPP OFF)
if((HAFT_CONFIGURATION STREQUAL "native" AND CMAKE_BUILD_TYPE STREQUAL "Debug")
    OR HAFT_CONFIGURATION STREQUAL "emulator")
  set(HAFT_STRICT_CPP ON)
endif()

# haft_test(NAME SOURCES file... [DEFS NAME=VALUE...] [OPTIONS flag...] [LIBS target...] [SHARED]
#           [NOT_IN configuration...] [LABELS label...] [TIMEOUT seconds] [SERIAL] [STRICT_CPP])
# A test program test_NAME, registered as NAME. It passes if it exits 0. NOT_IN leaves it out where
# it cannot work, or need not run: address, thread, valgrind, emulator (a cross build), repeats, quick or clang.
# SHARED links libhaft.so instead of libhaft.a; SERIAL runs it with no other test beside it;
# STRICT_CPP makes it one of those that HAFT_STRICT_CPP changes.
function(haft_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL;SHARED;STRICT_CPP" "TIMEOUT"
    "SOURCES;DEFS;OPTIONS;LIBS;NOT_IN;LABELS")
  set_property(DIRECTORY APPEND PROPERTY HAFT_DECLARED_TESTS ${name})
  haft_is_in(left_out "${arg_NOT_IN}")
  if(left_out)
    return()
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  target_compile_definitions(test_${name} PRIVATE ${arg_DEFS})
  target_compile_options(test_${name} PRIVATE ${arg_OPTIONS})
  target_link_libraries(test_${name} PRIVATE
    ${arg_LIBS} $<IF:$<BOOL:${arg_SHARED}>,haft,haft_static> Threads::Threads m)
  if(arg_STRICT_CPP AND HAFT_STRICT_CPP)
    target_compile_options(test_${name} PRIVATE -fno-rtti -D_GLIBCXX_ASSERTIONS)
    set_target_properties(test_${name} PROPERTIES CXX_STANDARD 23)
  endif()
  # Backtraces by backtrace_symbols(3) need the program's own names.
  set_target_properties(test_${name} PROPERTIES ENABLE_EXPORTS ON)
  add_test(NAME ${name} COMMAND ${HAFT_TEST_LAUNCHER} $<TARGET_FILE:test_${name}>)
  set(serial)
  if(arg_SERIAL)
    set(serial SERIAL)
  endif()
  haft_test_properties(${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} ${serial})
endfunction()

# haft_script_test(NAME SCRIPT file [ARGS argument...]
#                  [NOT_IN configuration...] [LABELS label...] [TIMEOUT seconds] [SERIAL])
# A test that is a shell script. It finds in its environment HAFT_SOURCE_DIR, HAFT_BUILD_DIR (the
# build's root), HAFT_TEST_DIR (where this folder's test programs are), HAFT_LAUNCHER (what runs
# test programs, often empty), CC and CXX.
function(haft_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "SCRIPT;TIMEOUT" "ARGS;NOT_IN;LABELS")
  set_property(DIRECTORY APPEND PROPERTY HAFT_DECLARED_TESTS ${name})
  haft_is_in(left_out "${arg_NOT_IN}")
  if(left_out)
    return()
  endif()
  get_filename_component(script "${arg_SCRIPT}" ABSOLUTE)
  add_test(NAME ${name} COMMAND sh "${script}" ${arg_ARGS})
  set(serial)
  if(arg_SERIAL)
    set(serial SERIAL)
  endif()
  list(JOIN HAFT_TEST_LAUNCHER " " launcher)
  haft_test_properties(${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} ${serial} ENVIRONMENT
    "HAFT_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "HAFT_BUILD_DIR=${PROJECT_BINARY_DIR}"
    "HAFT_TEST_DIR=${CMAKE_CURRENT_BINARY_DIR}"
    "HAFT_LAUNCHER=${launcher}"
    "CC=${CMAKE_C_COMPILER}"
    "CXX=${CMAKE_CXX_COMPILER}")
endfunction()

# haft_floors_test(NAME FOLDER folder [OBJECTS target]): the folder's floors (tools/floors.txt) hold, by what is included
# and by the symbols of the objects.
function(haft_floors_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;OBJECTS" "")
  find_program(HAFT_PYTHON python3)
  if(HAFT_PYTHON)
    set_property(DIRECTORY APPEND PROPERTY HAFT_DECLARED_TESTS ${name})
    add_test(NAME ${name} COMMAND "${HAFT_PYTHON}" "${PROJECT_SOURCE_DIR}/tools/check_floors.py" ${arg_FOLDER}
      "$<$<BOOL:${arg_OBJECTS}>:$<TARGET_OBJECTS:${arg_OBJECTS}>>" COMMAND_EXPAND_LISTS)
  endif()
endfunction()

# haft_tests_in_folder([LIBS target...] [NOT_IN configuration...]): every test_NAME.c, .cpp or .sh of this folder that
# no haft_test or haft_script_test has named becomes a test with default properties.
function(haft_tests_in_folder)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "NOT_IN")
  haft_glob(files "test_*.c" "test_*.cpp" "test_*.sh")
  get_property(declared DIRECTORY PROPERTY HAFT_DECLARED_TESTS)
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    get_filename_component(extension "${file}" EXT)
    string(REGEX REPLACE "^test_" "" name "${name}")
    if(name IN_LIST declared)
      continue()
    elseif(extension STREQUAL ".sh")
      haft_script_test(${name} SCRIPT "${file}" NOT_IN ${arg_NOT_IN})
    else()
      haft_test(${name} SOURCES "${file}" ${ARGN})
    endif()
  endforeach()
endfunction()

# haft_examples_in_folder(LANGUAGE PATTERN [LIBS target...] [OPTIONS flag...] [NOT_IN configuration...] [EXCEPT regex]):
# every matching file, but for those whose paths match EXCEPT, is a whole program, built as NAME beside its siblings. Where NAME.expected exists,
# ctest holds its output to it. NOT_IN is as for haft_test.
function(haft_examples_in_folder language pattern)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "EXCEPT" "LIBS;OPTIONS;NOT_IN")
  haft_is_in(left_out "${arg_NOT_IN}")
  if(left_out)
    return()
  endif()
  haft_glob(files "${pattern}")
  if(arg_EXCEPT)
    list(FILTER files EXCLUDE REGEX "${arg_EXCEPT}")
  endif()
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    set(target example_${language}_${name})
    add_executable(${target} "${file}")
    set_target_properties(${target} PROPERTIES OUTPUT_NAME "${name}")
    target_compile_options(${target} PRIVATE ${arg_OPTIONS})
    target_link_libraries(${target} PRIVATE ${arg_LIBS} Threads::Threads)
    set(expected "${CMAKE_CURRENT_SOURCE_DIR}/${name}.expected")
    if(HAFT_TESTS AND EXISTS "${expected}")
      add_test(NAME ${target} COMMAND sh "${PROJECT_SOURCE_DIR}/tools/compare-output.sh"
        "${expected}" ${HAFT_TEST_LAUNCHER} $<TARGET_FILE:${target}>)
      haft_test_properties(${target} LABELS example)
    endif()
  endforeach()
endfunction()

# ---- The libraries above libhaft, each of which is a component of find_package(haft) ----

# From the folder of .pc files to the prefix.
file(RELATIVE_PATH HAFT_PREFIX_FROM_PKGCONFIG
  "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" HAFT_PREFIX_FROM_PKGCONFIG "${HAFT_PREFIX_FROM_PKGCONFIG}")

# haft_objects(NAME file...): haft_NAME_objects, for the library and the archive.
function(haft_objects name)
  set(objects haft_${name}_objects)
  add_library(${objects} OBJECT ${ARGN})
  set_target_properties(${objects} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden)
  target_compile_options(${objects} PRIVATE -fno-plt)
  if(HAFT_ARCH STREQUAL "x86_64")
    # Without it gcc zeroes what a request or a wait begins with by `rep stos`, which takes four times as long.
    target_compile_options(${objects} PRIVATE
      $<$<COMPILE_LANG_AND_ID:C,GNU>:-mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign>)
  endif()
  target_compile_definitions(${objects} PRIVATE _GNU_SOURCE)
  target_include_directories(${objects}
    PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/io/include"
      "${PROJECT_SOURCE_DIR}/core/include"
    PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
  target_link_libraries(${objects} PRIVATE Threads::Threads)
endfunction()

# haft_libraries(NAME ON target... [LIBS library...]): haft_NAME and haft_NAME_static, of haft_NAME_objects,
# on other libraries of Haft (the archive on their archives) and on the system's.
function(haft_libraries name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ON;LIBS")
  set(library haft_${name})
  set(archives ${arg_ON})
  list(TRANSFORM archives APPEND _static)
  add_library(${library} SHARED $<TARGET_OBJECTS:${library}_objects>)
  set_target_properties(${library} PROPERTIES VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(${library} PUBLIC ${arg_ON})
  # Symbols are resolved when the library is loaded: a small stack has no room for the resolver.
  target_link_options(${library} PRIVATE -Wl,-z,now)
  add_library(${library}_static STATIC $<TARGET_OBJECTS:${library}_objects>)
  target_link_libraries(${library}_static PUBLIC ${archives})
  foreach(target ${library} ${library}_static)
    add_library(haft::${target} ALIAS ${target})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME haft-${name})
    target_link_libraries(${target} PRIVATE Threads::Threads ${arg_LIBS})
    # Headers of C++ include haft.hpp, which is beside them where they are installed.
    target_include_directories(${target} INTERFACE
      $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cpp/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
endfunction()

# haft_install_component(NAME target...): what find_package(haft COMPONENTS NAME) and pkg-config find. Its .pc
# file is made of haft-NAME.pc.in, by the variables of the caller.
function(haft_install_component name)
  string(TOUPPER ${name} upper)
  set_property(TARGET ${ARGN} PROPERTY HAFT_LINK "${HAFT_${upper}_PRIVATE}") # what else its archive is linked with
  install(TARGETS ${ARGN} EXPORT haft_${name} COMPONENT ${name})
  install(EXPORT haft_${name} NAMESPACE haft:: FILE haft-${name}-targets.cmake
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/haft" COMPONENT ${name})
  install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT ${name}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
  configure_file(haft-${name}.pc.in haft-${name}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/haft-${name}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT ${name})
endfunction()
