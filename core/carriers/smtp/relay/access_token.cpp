// Access tokens of OAuth 2: runs the program that prints one, and keeps it for the time that it is good for.

#include "carriers/smtp/relay/access_token.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/pattern.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "base/secret_text.hpp"
#include "process/child.hpp"

namespace mailroom::smtp {
namespace {

constexpr std::chrono::seconds early{60};

[[noreturn]] void refuse_token(const std::string& source, std::string_view problem) {
  throw Error(
      ExitCode::configuration, fmt::format("{} {}", source, problem),
      "it must give one line with the access token, or a JSON object with access_token and expires_in");
}

bool is_token(std::string_view text) {
  return !text.empty() && is_printable(text) && text.find_first_of(" \t\"{}") == std::string_view::npos;
}

/// Masks the value after a key such as `client_secret=` or `"refresh_token": "`, what follows `Bearer`, and
/// tokens of JSON, which all begin so.
std::string without_secrets(std::string text) {
  static const std::array<std::pair<Pattern, const char*>, 4> patterns{{
      {Pattern(R"re(((secret|password|passwd|token|key|assertion)["']?\s*=\s*["']?)[^\s"'&,;]+)re",
               LetterCase::ignored),
       "$1***"},
      {Pattern(R"re(((secret|password|passwd|token|key|assertion)["']?\s*:\s*["']?)[^\s"'&,;]{16,})re",
               LetterCase::ignored),
       "$1***"},
      {Pattern(R"re((bearer\s+)\S+)re", LetterCase::ignored), "$1***"},
      {Pattern(R"re(eyJ[\w.-]+)re"), "***"},
  }};
  for (const auto& [pattern, replacement] : patterns)
    text = pattern.replaced(text, replacement);
  return text;
}

std::string last_line(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  text = text.substr(text.rfind('\n') + 1);
  return std::string(text.substr(std::min(text.find_first_not_of(blanks), text.size())));
}

constexpr std::size_t longest_output = 65'536;

[[noreturn]] void refuse_command(const std::string& source, const std::string& problem,
                                 const std::string& words = {}) {
  throw Error(ExitCode::configuration,
              fmt::format("{} {}{}{}", source, problem, words.empty() ? "" : ": ", words),
              "run it by hand, as this user: it must print an access token");
}

/// A shell that runs a command, and what the command prints.
class TokenCommand {
 public:
  TokenCommand(const std::string& command, const std::string& source)
      : errors_(memfd_create("mailroom-token-errors", MFD_CLOEXEC)) {
    process::Pipe output;
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int failure =
        child_.start({"/bin/sh", "-c", command},
                     {{STDIN_FILENO, nothing}, {STDOUT_FILENO, output.writer()}, {STDERR_FILENO, errors_}});
    close(nothing);
    if (failure != 0) {
      close(errors_);
      refuse_command(source, fmt::format("cannot be started: {}", std::strerror(failure)));
    }
    output_ = output.take_reader();
  }
  ~TokenCommand() {
    close(output_);
    close(errors_);
  }
  TokenCommand(const TokenCommand&) = delete;
  TokenCommand& operator=(const TokenCommand&) = delete;

  int output() const { return output_; }
  /// The end of what it has written to stderr.
  std::string errors() const {
    struct stat file {};
    std::array<char, 4096> bytes{};
    const auto wanted = static_cast<off_t>(bytes.size());
    if (fstat(errors_, &file) != 0) return {};
    const auto size = pread(errors_, bytes.data(), bytes.size(), std::max<off_t>(file.st_size - wanted, 0));
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  process::Child& child() { return child_; }

 private:
  int errors_;  ///< a file in memory: a pipe that nobody empties would block the program
  int output_ = -1;
  process::Child child_;
};

}  // namespace

std::string failure_words(std::string_view text) {
  const auto object = try_parse_json(text);
  if (object.is_discarded() || !object.is_object()) return without_secrets(printable(last_line(text)));
  const auto error = text_at(object, "error");
  const auto description = text_at(object, "error_description");
  const auto* const separator = error.empty() || description.empty() ? "" : ": ";
  return without_secrets(printable(error + separator + description));
}

AccessToken parse_access_token(std::string_view text, const std::string& source) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  if (text.empty()) refuse_token(source, "gives no token");
  AccessToken token{.text = std::string(text)};
  if (text.front() == '{') {
    const auto object = try_parse_json(text);
    if (object.is_discarded() || !object.is_object()) refuse_token(source, "gives JSON that does not parse");
    token.text = text_at(object, "access_token");
    if (const auto words = failure_words(text); token.text.empty() && !words.empty())
      refuse_token(source, "gives no token: " + words);
    const auto lives = object.find("expires_in");
    if (lives != object.end() && lives->is_number())
      token.lives = std::chrono::seconds(lives->get<std::int64_t>());
  }
  if (!is_token(token.text)) refuse_token(source, "gives something else than a token");
  return token;
}

std::string TokenSource::token(TimePoint now) {
  const std::lock_guard lock(mutex_);
  const bool has_ended = ends_at_ && now >= *ends_at_;
  if (keeps_ && !kept_.empty() && !has_ended) {
    ++uses_;
    return kept_;
  }
  auto fetched = fetch_();
  kept_ = fetched.text;
  uses_ = 1;
  ends_at_.reset();
  if (fetched.lives) ends_at_ = now + *fetched.lives - early;
  return kept_;
}

bool TokenSource::was_kept(const std::string& token) {
  const std::lock_guard lock(mutex_);
  // Another thread has fetched a new one meanwhile.
  if (token != kept_) return true;
  kept_.clear();
  return keeps_ && uses_ > 1;
}

std::string output_of_command(const std::string& command, Milliseconds limit, const std::string& source) {
  TokenCommand running(command, source);
  const auto until = steady_now() + limit;
  std::string text;
  std::array<char, 4096> bytes{};
  for (;;) {
    const auto left = std::chrono::ceil<Milliseconds>(until - steady_now());
    pollfd awaited{.fd = running.output(), .events = POLLIN, .revents = 0};
    const int ready = poll(&awaited, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0)
      refuse_command(source, fmt::format("has not ended within {}", format_duration(limit)),
                     failure_words(running.errors()));
    const auto size = read(running.output(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(size));
    if (text.size() > longest_output) refuse_command(source, "prints more than a token");
  }
  const auto how = running.child().wait();
  const auto words = text.starts_with('{') ? failure_words(text) : failure_words(running.errors());
  if (!running.child().has_succeeded()) refuse_command(source, how, words);
  if (text.find_first_not_of(" \r\n") == std::string::npos) refuse_command(source, "prints nothing", words);
  return text;
}

std::shared_ptr<TokenSource> configured_tokens(const TokenSettings& settings) {
  const auto& [file, file_key, command, command_key, limit, readable] = settings;
  if (!file.empty() && !command.empty())
    throw Error(ExitCode::configuration, fmt::format("{} and {} are both set", file_key, command_key),
                "remove one of them: mailroom config show says where each comes from");
  if (!command.empty()) {
    return std::make_shared<TokenSource>(
        [command = command, limit = limit, source = "the program of " + command_key] {
          return parse_access_token(output_of_command(command, limit, source), source);
        },
        true);
  }
  if (file.empty()) return nullptr;
  return std::make_shared<TokenSource>(
      [file = file, readable = readable, source = "the file of " + file_key] {
        return parse_access_token(read_token_file(file, readable), source);
      },
      false);
}

}  // namespace mailroom::smtp
