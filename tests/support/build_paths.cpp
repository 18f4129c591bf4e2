#include "support/build_paths.hpp"

namespace mailroom::test {

const std::string mailroom_binary = MAILROOM_BINARY;
const std::string source_directory = MAILROOM_SOURCE_DIR;
const std::string share_directory = MAILROOM_SHARE;

}  // namespace mailroom::test
