# Everything comes from the system's packages; scripts/install-packages names them.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)

# libpqxx and libpq ship no CMake package on Debian; yaml-cpp's names its target differently from version to version.
pkg_check_modules(PQXX REQUIRED IMPORTED_TARGET libpqxx)
pkg_check_modules(LIBPQ REQUIRED IMPORTED_TARGET libpq)
pkg_check_modules(YAML_CPP REQUIRED IMPORTED_TARGET yaml-cpp)
