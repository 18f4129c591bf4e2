#include "base/line_splitter.hpp"

#include <algorithm>

namespace mailroom {

void LineSplitter::add(std::string_view bytes, const Each& each) {
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    const auto line = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (rest_.empty()) {
      each(line.substr(0, max_size_ + 1));
      continue;
    }
    keep(line);
    each(rest_);
    rest_.clear();
  }
  keep(bytes);
}

void LineSplitter::finish(const Each& each) {
  if (!rest_.empty()) each(rest_);
  rest_.clear();
}

void LineSplitter::keep(std::string_view bytes) {
  rest_.append(bytes.substr(0, std::min(bytes.size(), max_size_ + 1 - rest_.size())));
}

}  // namespace mailroom
