// The access tokens of OAuth 2, for relays that take no password.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace mailroom::smtp {

/// An access token of OAuth 2 as a file or a program gives it.
struct AccessToken {
  std::string text;
  std::optional<std::chrono::seconds> lives{};  ///< from now; nullopt if nobody says
};

/// What a token server or a program says of its failure, fit for a log: `error` and `error_description` of a
/// JSON object, else the last line of `text`; without what looks like a secret. Empty if there is nothing.
std::string failure_words(std::string_view text);

/// Reads the one line with the token, or the answer of a token server: a JSON object with `access_token` and
/// perhaps `expires_in`. Throws Error(configuration), naming `source`, if there is neither.
AccessToken parse_access_token(std::string_view text, const std::string& source);

/// Where the token of the relay's user comes from. For several threads.
class TokenSource {
 public:
  using Fetch = std::function<AccessToken()>;

  /// `fetch` may throw Error. With `keeps` a token is kept until a minute before its end, or until it is
  /// refused; otherwise each login fetches it anew.
  TokenSource(Fetch fetch, bool keeps) : fetch_(std::move(fetch)), keeps_(keeps) {}

  /// The token for a login. Throws what `fetch` throws.
  std::string token(TimePoint now);
  /// The relay has refused `token`. True if that was a kept one, and the next call of token() may give
  /// another.
  bool was_kept(const std::string& token);

 private:
  Fetch fetch_;
  bool keeps_;
  std::mutex mutex_;
  std::string kept_;
  std::optional<TimePoint> ends_at_{};
  int uses_ = 0;  ///< of the kept token
};

/// Runs `command` by /bin/sh and returns what it prints. Throws Error(configuration), with its own words and
/// `source`, if it fails, prints nothing or takes longer than `limit`. It inherits the environment without
/// secrets of mailroom.
std::string output_of_command(const std::string& command, Milliseconds limit,
                              const std::string& source = "the program of send.token_command");

/// Where settings say that a token comes from, and how they are called.
struct TokenSettings {
  std::string file{};
  std::string file_key{};
  std::string command{};  ///< for the shell
  std::string command_key{};
  Milliseconds limit{};  ///< of the command
  bool allows_readable_file = false;
};

/// Null if neither is set. Throws Error(configuration) if both are.
std::shared_ptr<TokenSource> configured_tokens(const TokenSettings& settings);

}  // namespace mailroom::smtp
