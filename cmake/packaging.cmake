# The Debian packages: `cpack -G DEB` in a build directory, with --config CPackSendmail.cmake the one for sendmail;
# scripts/package builds them to be shipped. It adds to what
# `cmake --install` installs the component `debian`: units, the user of the services, /etc/mailroom, and what Debian's
# policy asks for.

set(packaging "${PROJECT_SOURCE_DIR}/packaging")
set(MAILROOM_PACKAGE_REVISION 1 CACHE STRING "the revision of the Debian package")

# The release of Debian that the package is for: its libraries differ.
file(STRINGS /etc/os-release os_release REGEX "^VERSION_(ID|CODENAME)=")
foreach(line IN LISTS os_release)
  string(REGEX MATCH "^([A-Z_]+)=\"?([^\"]*)\"?$" matched "${line}")
  set("os_${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}")
endforeach()
set(package_release "${MAILROOM_PACKAGE_REVISION}~deb${os_VERSION_ID}")
set(package_suite "${os_VERSION_CODENAME}")
set(package_version "${PROJECT_VERSION}-${package_release}")
set(package_contact "The mailroom authors <maintainers@mailroom.invalid>")

configure_file("${packaging}/debian/changelog.in" "${PROJECT_BINARY_DIR}/packaging/changelog.Debian" @ONLY)

# install_for_debian(FILES… DESTINATION DIRECTORY …): files that only the package has.
macro(install_for_debian)
  install(${ARGN} COMPONENT debian EXCLUDE_FROM_ALL)
endmacro()
install_for_debian(DIRECTORY "${packaging}/systemd/" DESTINATION lib/systemd/system)
install_for_debian(FILES "${packaging}/sysusers.conf" DESTINATION lib/sysusers.d RENAME mailroom.conf)
install_for_debian(FILES "${packaging}/debian/mailroom.yaml" DESTINATION /etc/mailroom)
install_for_debian(DIRECTORY DESTINATION /etc/mailroom/credentials
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE)
install_for_debian(FILES "${packaging}/debian/lintian-overrides" DESTINATION share/lintian/overrides RENAME mailroom)
install_for_debian(FILES "${packaging}/debian/copyright" "${PROJECT_BINARY_DIR}/packaging/changelog.Debian"
  DESTINATION share/doc/mailroom)

# The package mailroom-sendmail has other names of the program, with their pages.
set(sendmail_files "${PROJECT_BINARY_DIR}/packaging/sendmail")
foreach(link IN ITEMS "sbin/sendmail ../bin/mailroom" "lib/sendmail ../sbin/sendmail" "bin/mailq mailroom" "bin/newaliases mailroom"
    "share/man/man1/sendmail.1.gz mailroom-sendmail.1.gz" "share/man/man1/mailq.1.gz mailroom-sendmail.1.gz"
    "share/man/man1/newaliases.1.gz mailroom-sendmail.1.gz" "share/man/man8/sendmail.8.gz ../man1/mailroom-sendmail.1.gz")
  separate_arguments(link)
  list(POP_FRONT link name)
  cmake_path(GET name PARENT_PATH directory)
  file(MAKE_DIRECTORY "${sendmail_files}/${directory}")
  file(CREATE_LINK "${link}" "${sendmail_files}/${name}" SYMBOLIC)
endforeach()
install(DIRECTORY "${sendmail_files}/" DESTINATION . COMPONENT sendmail EXCLUDE_FROM_ALL)
install(FILES "${packaging}/debian/copyright" "${PROJECT_BINARY_DIR}/packaging/changelog.Debian"
  DESTINATION share/doc/mailroom-sendmail COMPONENT sendmail EXCLUDE_FROM_ALL)
configure_file("${CMAKE_CURRENT_LIST_DIR}/packaging_sendmail.cmake.in" "${PROJECT_BINARY_DIR}/CPackSendmail.cmake" @ONLY)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${package_contact}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "database mail for PostgreSQL: one SQL statement asks for a mail")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"SELECT mailroom_send() asks for a mail in the transaction that needs it. If
that rolls back, nobody is mailed. Once it has committed, mailroom delivers the
mail through an SMTP relay, Amazon SES or Resend, tries again what is deferred,
and records what became of it for each recipient. No committed mail is lost.
.
mailroom init sets it up. This package has the program and templates of systemd
services, one for each queue. It starts none of them.
.
Sign-up and recovery mail with signed links is built in, for a table of
accounts; a sender of your own can take the place of mailroom's.")
set(CPACK_PACKAGE_HOMEPAGE_URL "")
set(CPACK_STRIP_FILES ON)
# With DESTDIR, since files in /etc have absolute destinations.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};${PROJECT_NAME};ALL;/;${PROJECT_BINARY_DIR};${PROJECT_NAME};debian;/")
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/finish_debian.cmake")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "${package_release}")
set(CPACK_DEBIAN_PACKAGE_SECTION mail)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# For systemd-sysusers.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "postgresql")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${packaging}/debian/conffiles" "${packaging}/debian/postinst"
  "${packaging}/debian/prerm" "${packaging}/debian/postrm")
include(CPack)
