// A configuration file of any content is loaded, or refused as one, without telling a key that stands in it.

#include "base/error.hpp"
#include "config/settings.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"

namespace mailroom::fuzz::fuzz_yaml {
namespace {

constexpr std::string_view secret = "5ec1e7a4b0d29f6388c7f31d0a96e245b17c0f8ad35e642991fd8c03ba7e4d56";
constexpr std::size_t telling = 12;  ///< so many digits of it in a row are no chance

/// An @ of the input stands for the key, which the fuzzer would never find.
std::string with_secret(std::string_view text) {
  std::string file;
  for (const char c : text) {
    if (c == '@') {
      file += secret;
    } else {
      file += c;
    }
  }
  return file;
}

bool tells_secret(const std::string& text) {
  for (std::size_t i = 0; i + telling <= secret.size(); ++i) {
    if (text.find(secret.substr(i, telling)) != std::string::npos) return true;
  }
  return false;
}

void check_loaded(const config::Settings& settings, const std::string& path) {
  require(settings.file == path, "the file is named");
  require(settings.collect.batch_limit.min >= 1 &&
              settings.collect.batch_limit.min <= settings.collect.batch_limit.max &&
              settings.collect.batch_limit.max <= 10'000,
          "the limit is within its bounds");
  require(settings.signing.key.empty() || settings.signing.key.size() == secret.size(),
          "a key has 64 digits");
  for (const auto& value : settings.values)
    require(value.is_secret || value.text != secret, "a key that is shown by config is hidden there");
}

int run(const std::uint8_t* data, std::size_t size) {
  // One that the fuzzer read out of our comparisons proves nothing.
  if (tells_secret(std::string(text_of(data, size)))) return -1;
  static MemoryFile file;
  file.fill(with_secret(text_of(data, size)));
  try {
    check_loaded(config::load_settings({.file = file.path(), .flags = {}}, {}), file.path());
  } catch (const Error& error) {
    require(error.code() == ExitCode::configuration, "it is an error of the configuration");
    require(!tells_secret(error.what()) && !tells_secret(error.hint()), "an error keeps the key to itself");
  }
  return 0;
}

const Target target("yaml", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_yaml
