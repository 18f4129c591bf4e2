#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace mailroom {

/// Splits a stream of bytes into lines. Buffers at most `max_size` + 1 bytes, however long a line is.
class LineSplitter {
 public:
  /// Receives a line without its newline. A line longer than `max_size` is cut to `max_size` + 1 bytes.
  using Each = std::function<void(std::string_view line)>;

  explicit LineSplitter(std::size_t max_size) : max_size_(max_size) {}

  /// Calls `each` with every line that ends within `bytes`. Takes linear time.
  void add(std::string_view bytes, const Each& each);
  /// Calls `each` with the text after the last newline, if any.
  void finish(const Each& each);

  /// The capacity of the buffer, in bytes.
  std::size_t held() const { return rest_.capacity(); }

 private:
  void keep(std::string_view bytes);

  std::size_t max_size_;
  std::string rest_;  ///< the beginning of a line that has not ended yet
};

}  // namespace mailroom
