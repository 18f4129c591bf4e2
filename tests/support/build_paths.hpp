#pragma once

#include <string>

namespace mailroom::test {

// These paths stand in one compiled file, so that a second checkout finds all others in the compiler cache.

/// The program under test, and the top of the sources.
extern const std::string mailroom_binary;
extern const std::string source_directory;
/// Where the build puts man pages and completions, laid out as they are installed.
extern const std::string share_directory;

}  // namespace mailroom::test
