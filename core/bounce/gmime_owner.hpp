// Owners of what GMime makes, for whoever reads mails by it: nothing here links to GMime unless it is used.
#pragma once

#include <gmime/gmime.h>
#include <memory>
#include <string>

namespace mailroom::bounce::gmime {

struct Release {
  void operator()(void* object) const { g_object_unref(object); }
};
struct Free {
  void operator()(void* memory) const { g_free(memory); }
};

/// An object of GMime.
template <typename T>
using Owned = std::unique_ptr<T, Release>;
/// A text that GMime has made for its caller.
using OwnedText = std::unique_ptr<char, Free>;

inline std::string text_or_empty(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace mailroom::bounce::gmime
