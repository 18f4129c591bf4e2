#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace mailroom::fuzz {

/// A target of the executable fuzz_targets, which its first argument names. `run` gets one input after
/// another, as libFuzzer's LLVMFuzzerTestOneInput does, and returns what that would: 0, or -1 for an input
/// that is not to be kept.
struct Target {
  using Run = int (*)(const std::uint8_t* data, std::size_t size);
  Target(const char* name, Run run);
};

/// Ends the run as a crash, of which libFuzzer keeps the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {static_cast<const char*>(static_cast<const void*>(data)), size};
}

/// Takes an input apart into fields, between which there is a byte FF: it has no place in UTF-8, and other
/// bytes are just as wrong there.
class Fields {
 public:
  Fields(const std::uint8_t* data, std::size_t size) : rest_(text_of(data, size)) {}

  bool is_empty() const { return rest_.empty(); }

  /// The next field, empty when there is none left.
  std::string_view take() {
    const auto length = std::min(rest_.find('\xff'), rest_.size());
    const auto field = rest_.substr(0, length);
    rest_.remove_prefix(std::min(length + 1, rest_.size()));
    return field;
  }

  /// The bytes of the next field as a number.
  std::int64_t take_number() {
    std::uint64_t number = 0;
    for (const char c : take())
      number = number << 8 | static_cast<unsigned char>(c);
    return static_cast<std::int64_t>(number);
  }

 private:
  std::string_view rest_;
};

}  // namespace mailroom::fuzz
