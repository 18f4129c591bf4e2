# Warnings, sanitizers and the include root, as one interface target that every target of the project links.

add_library(mailroom_compiler INTERFACE)
target_include_directories(mailroom_compiler INTERFACE "${PROJECT_SOURCE_DIR}/core")
target_compile_definitions(mailroom_compiler INTERFACE MAILROOM_VERSION="${PROJECT_VERSION}")
target_compile_options(mailroom_compiler INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wimplicit-fallthrough)
# No cast makes a pointer to a type with a larger alignment. The sanitizers would check every access for that, which
# takes a twentieth of their compilation.
target_compile_options(mailroom_compiler INTERFACE $<IF:$<CXX_COMPILER_ID:GNU>,-Wcast-align=strict,-Wcast-align>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false overlapping copies in operator+ of std::string (GCC bug 105651).
  target_compile_options(mailroom_compiler INTERFACE -Wduplicated-cond -Wlogical-op -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # g++ 14 takes the parameters of a statement of libpqxx 7, a std::variant, for uninitialized. g++ 12 still looks for that.
  target_compile_options(mailroom_compiler INTERFACE -Wno-maybe-uninitialized)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # It takes a function of another file's anonymous namespace for shadowed.
  target_compile_options(mailroom_compiler INTERFACE -Wno-shadow)
endif()
if(MAILROOM_WERROR)
  target_compile_options(mailroom_compiler INTERFACE -Werror)
endif()
if(MAILROOM_SANITIZE)
  target_compile_definitions(mailroom_compiler INTERFACE MAILROOM_SANITIZED)
  # Of core and cmd. Tests are not instrumented, which takes half of their compilation: what is under test is.
  set(MAILROOM_SANITIZERS -fsanitize=address,undefined -fno-sanitize=alignment -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  # Relocating the tables of the sanitizers took a sixth of a short command.
  target_link_options(mailroom_compiler INTERFACE -fsanitize=address,undefined -no-pie)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # AddressSanitizer reports the trap with its stack (scripts/test asks for that), but not which check it was. The
    # texts of all checks are 20 MB of data, which LeakSanitizer reads at the end of each of some 6,000 processes of a
    # run: a fifth of a short command.
    list(APPEND MAILROOM_SANITIZERS -fsanitize-trap=undefined)
    # It links in a quarter of the time.
    target_link_options(mailroom_compiler INTERFACE -fuse-ld=lld)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With instrumentation g++ 12 reports false uses of uninitialized values in the standard library.
    target_compile_options(mailroom_compiler INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(MAILROOM_FUZZ AND NOT (MAILROOM_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang"))
  message(FATAL_ERROR "MAILROOM_FUZZ needs clang, which contains libFuzzer, and MAILROOM_SANITIZE: cmake --preset asan")
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

# For code that runs once per command, not per token: optimizing it takes most of a release build and saves nothing.
set(MAILROOM_COLD_OPTIONS "$<$<CONFIG:Release>:-O1>")
if(MAILROOM_SANITIZE)
  # Optimizing what the sanitizers add takes more than half of the compilation. It pays only where tests run code
  # millions of times.
  set(MAILROOM_COLD_OPTIONS -O0)
endif()
# The garbage collector of g++ takes a tenth of a unity build, because it scans the large files repeatedly.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(mailroom_compiler INTERFACE
    "SHELL:--param ggc-min-expand=300" "SHELL:--param ggc-min-heapsize=524288")
endif()

# mailroom_add_core(NAME [COLD] [BUSY] [FUZZED] [APART LIBRARY] SOURCES… LINK…): one static library for one directory of
# core/. COLD: it runs once per command. BUSY: tests without a server run it millions of times, so that it is optimized
# under the sanitizers too. FUZZED: libFuzzer sees which of its code an input reaches. Where few files are compiled, all
# directories with the same options are one library, and NAME is its alias. APART: all with the same
# LIBRARY are, because another one can take its place.
function(mailroom_add_core name)
  cmake_parse_arguments(ARG "COLD;BUSY;FUZZED" "APART" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  set(library mailroom_${name})
  if(CMAKE_UNITY_BUILD)
    set(library mailroom_core)
    # Each library costs a build some seconds. Only a test replaces one, only a release is compiled more or less well, only the
    # sanitizers take BUSY otherwise, and only a fuzz target looks at coverage.
    if(ARG_APART MATCHES "^MAILROOM_" AND (NOT MAILROOM_TESTS OR MAILROOM_TESTS STREQUAL "plain"))
      unset(ARG_APART)
    endif()
    if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
      set(ARG_COLD OFF)
    endif()
    if(NOT MAILROOM_SANITIZE)
      set(ARG_BUSY OFF)
    endif()
    if(NOT MAILROOM_FUZZ AND (ARG_COLD OR NOT CMAKE_BUILD_TYPE STREQUAL "Release"))
      set(ARG_FUZZED OFF)
    endif()
    foreach(option COLD BUSY FUZZED)
      if(ARG_${option} AND NOT ARG_APART)
        string(TOLOWER "${library}_${option}" library)
      endif()
    endforeach()
    if(ARG_APART)
      set(library mailroom_${ARG_APART})
    endif()
    list(TRANSFORM ARG_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")
  endif()
  if(NOT TARGET ${library})
    add_library(${library} STATIC)
  endif()
  if(NOT library STREQUAL mailroom_${name})
    add_library(mailroom_${name} ALIAS ${library})
  endif()
  target_sources(${library} PRIVATE ${ARG_SOURCES})
  foreach(other IN LISTS ARG_LINK)
    if(TARGET ${other})
      get_target_property(aliased ${other} ALIASED_TARGET)
      if(aliased STREQUAL library)
        list(REMOVE_ITEM ARG_LINK ${other})
      endif()
    endif()
  endforeach()
  target_link_libraries(${library} PUBLIC mailroom_compiler ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  if(ARG_FUZZED AND MAILROOM_FUZZ)
    target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(ARG_COLD OR (MAILROOM_SANITIZE AND NOT ARG_BUSY))
    target_compile_options(${library} PRIVATE ${MAILROOM_COLD_OPTIONS})
  endif()
endfunction()
