# How tests are given to ctest: an executable, or a test file, is one of its tests. A process for each test case would
# take longer than most of the cases. scripts/test counts the cases.
#
# Labels say of a test where it runs:
#   plain  without the sanitizers alone: it measures, or runs others' programs rather than our code. The preset ci has these tests
#          only, the preset asan all others, so that .ci/run runs each test once.
#   long   takes minutes by nature: scripts/test runs it with --all only.

# What the tests of a label run, where it is not built otherwise.
add_custom_target(plain_tests)
add_custom_target(long_tests)

# mailroom_add_test(NAME NAME LABELS LABEL… [TARGETS TARGET…] [PROPERTIES NAME VALUE…] COMMAND WORD…): one test of ctest, which runs
# what TARGETS build. A command that this machine cannot run prints `NOT RUN: reason` and ends with 0.
function(mailroom_add_test)
  cmake_parse_arguments(ARG "" "NAME" "LABELS;TARGETS;PROPERTIES;COMMAND" ${ARGN})
  set(is_plain OFF)
  if("plain" IN_LIST ARG_LABELS)
    set(is_plain ON)
  endif()
  if((is_plain AND MAILROOM_SANITIZE) OR (NOT is_plain AND MAILROOM_TESTS STREQUAL "plain"))
    return()
  endif()
  add_test(NAME "${ARG_NAME}" COMMAND ${ARG_COMMAND})
  set_tests_properties("${ARG_NAME}" PROPERTIES LABELS "${ARG_LABELS}" ${ARG_PROPERTIES})
  foreach(label IN ITEMS plain long)
    if(ARG_TARGETS AND label IN_LIST ARG_LABELS)
      add_dependencies(${label}_tests ${ARG_TARGETS})
    endif()
  endforeach()
endfunction()

# mailroom_add_cases(TARGET NAME LABELS [CASES…]): one test of ctest for all cases of an executable, or for those that the
# expressions of Catch2 choose.
function(mailroom_add_cases target name labels)
  mailroom_add_test(NAME "${name}" LABELS ${labels} TARGETS ${target} COMMAND ${target} ${ARGN})
endfunction()

# mailroom_add_files(TARGET DIRECTORY LABELS [WITH…]): one test of ctest, DIRECTORY/NAME, for each source NAME_test.cpp of TARGET,
# run by the command WITH.
function(mailroom_add_files target directory labels)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "([a-z0-9_]+)_test\\.cpp")
      # Catch2 makes a tag of each file's name.
      mailroom_add_test(NAME "${directory}/${CMAKE_MATCH_1}" LABELS ${labels} TARGETS ${target}
        COMMAND ${ARGN} "$<TARGET_FILE:${target}>" "--filenames-as-tags" "[#${CMAKE_MATCH_1}_test]")
    endif()
  endforeach()
endfunction()

# mailroom_check_leaks(TEST…): under the sanitizers, each process of mailroom that these tests start looks for leaks at its end.
function(mailroom_check_leaks)
  if(MAILROOM_SANITIZE)
    set_tests_properties(${ARGN} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=handle_sigill=1:detect_leaks=1:malloc_context_size=30:quarantine_size_mb=16")
  endif()
endfunction()
