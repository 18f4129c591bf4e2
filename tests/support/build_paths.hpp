#pragma once

#include <string>

namespace mailroom::test {

// Only build_paths.cpp contains these paths, so that a second checkout can use the compiler cache for all
// other files.

/// The program under test, and the top of the sources.
extern const std::string mailroom_binary;
extern const std::string source_directory;
/// The directory of built man pages and completions, laid out as they are installed.
extern const std::string share_directory;

}  // namespace mailroom::test
