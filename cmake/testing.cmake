# How tests are given to ctest: an executable, or a test file, is one of its tests. A process for each test case would
# take longer than most of the cases. scripts/test counts the cases.

# mailroom_add_cases(TARGET NAME LABEL [CASES…]): one test of ctest for all cases of an executable, or for those that the
# expressions of Catch2 choose.
function(mailroom_add_cases target name label)
  add_test(NAME "${name}" COMMAND ${target} ${ARGN})
  set_tests_properties("${name}" PROPERTIES LABELS ${label})
endfunction()

# mailroom_add_files(TARGET DIRECTORY LABEL): one test of ctest, DIRECTORY/NAME, for each source NAME_test.cpp of TARGET.
function(mailroom_add_files target directory label)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "([a-z0-9_]+)_test\\.cpp")
      # Catch2 makes a tag of each file's name.
      mailroom_add_cases(${target} "${directory}/${CMAKE_MATCH_1}" ${label} "--filenames-as-tags" "[#${CMAKE_MATCH_1}_test]")
    endif()
  endforeach()
endfunction()
