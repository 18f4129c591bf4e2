#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "support/build_paths.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test {

/// The code blocks of `document`, a path below the top of the sources, that are marked as `language`.
inline std::vector<std::string> code_blocks(const std::string& document, const std::string& language) {
  const auto text = read_file(source_directory + "/" + document);
  const auto begin = "\n```" + language + "\n";
  std::vector<std::string> blocks;
  for (auto at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    blocks.push_back(text.substr(at, text.find("\n```", at) + 1 - at));
  }
  return blocks;
}

/// The one block that contains `part`. Throws std::runtime_error if there is none, or several.
inline std::string code_block(const std::string& document, const std::string& language,
                              const std::string& part) {
  std::vector<std::string> found;
  for (const auto& block : code_blocks(document, language))
    if (block.find(part) != std::string::npos) found.push_back(block);
  if (found.size() != 1) {
    throw std::runtime_error(document + " has " + std::to_string(found.size()) + " blocks of " + language +
                             " with " + part);
  }
  return found.front();
}

}  // namespace mailroom::test
