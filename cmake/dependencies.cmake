# All dependencies are system packages; scripts/install-packages lists them.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto SSL)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)

# libpqxx, libpq, libcurl and libmicrohttpd have no CMake package on Debian; the target name of yaml-cpp's depends on its version, and
# that of prometheus-cpp wants its web server and libcurl too.
pkg_check_modules(PQXX REQUIRED IMPORTED_TARGET libpqxx)
pkg_check_modules(LIBPQ REQUIRED IMPORTED_TARGET libpq)
pkg_check_modules(IDN2 REQUIRED IMPORTED_TARGET libidn2)
pkg_check_modules(LIBCURL REQUIRED IMPORTED_TARGET libcurl>=7.88)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(YAML_CPP REQUIRED IMPORTED_TARGET yaml-cpp)
pkg_check_modules(GMIME REQUIRED IMPORTED_TARGET GLOBAL gmime-3.0)
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET GLOBAL libevent libevent_openssl libevent_pthreads)

# What one carrier alone needs is looked for in its directory of core/carriers.

# What systemd offers to its services.
pkg_check_modules(LIBSYSTEMD IMPORTED_TARGET libsystemd)
option(MAILROOM_SYSTEMD "tell systemd how a service is, and write to its journal" ${LIBSYSTEMD_FOUND})
add_library(mailroom_systemd INTERFACE)
if(MAILROOM_SYSTEMD)
  if(NOT LIBSYSTEMD_FOUND)
    message(FATAL_ERROR "MAILROOM_SYSTEMD needs libsystemd: run scripts/install-packages")
  endif()
  target_link_libraries(mailroom_systemd INTERFACE PkgConfig::LIBSYSTEMD)
  target_compile_definitions(mailroom_systemd INTERFACE MAILROOM_SYSTEMD)
endif()
