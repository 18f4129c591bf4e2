# Run by CPack between install and package: changes what `cmake --install` lays out into what Debian's policy asks for.

set(usr "${CPACK_TEMPORARY_DIRECTORY}/usr")

if(CPACK_PACKAGE_NAME STREQUAL "mailroom")
  # Debian's zsh reads completions of packages here.
  file(MAKE_DIRECTORY "${usr}/share/zsh")
  file(RENAME "${usr}/share/zsh/site-functions" "${usr}/share/zsh/vendor-completions")
  file(RENAME "${usr}/share/doc/mailroom/CHANGELOG.md" "${usr}/share/doc/mailroom/changelog")
endif()

file(GLOB compressed "${usr}/share/man/man*/*" "${usr}/share/doc/*/changelog*")
foreach(file IN LISTS compressed)
  if(NOT IS_SYMLINK "${file}")
    execute_process(COMMAND gzip -9n "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
