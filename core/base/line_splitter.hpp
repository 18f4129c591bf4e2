#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace mailroom {

/// Cuts a stream of bytes into lines, in memory for one line however long the input has one.
class LineSplitter {
 public:
  /// Takes a line without its newline. One that is longer than allowed comes as its first `max_size` + 1
  /// bytes.
  using Each = std::function<void(std::string_view line)>;

  explicit LineSplitter(std::size_t max_size) : max_size_(max_size) {}

  /// Calls `each` with every line that ends within `bytes`. Looks at each byte once.
  void add(std::string_view bytes, const Each& each);
  /// Calls `each` with what follows the last newline, if there is anything.
  void finish(const Each& each);

  /// Bytes that are held at the moment.
  std::size_t held() const { return rest_.capacity(); }

 private:
  void keep(std::string_view bytes);

  std::size_t max_size_;
  std::string rest_;  ///< the beginning of a line whose end has not come yet
};

}  // namespace mailroom
