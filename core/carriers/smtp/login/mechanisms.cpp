// The words of a login; SmtpLogin sends them.

#include "carriers/smtp/login/mechanisms.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <fmt/format.h>
#include <utility>

#include "crypto/base64.hpp"
#include "crypto/digest.hpp"

namespace mailroom::smtp {
namespace {

using enum AuthMechanism;
using namespace std::string_literals;

constexpr std::array<std::pair<AuthMechanism, std::string_view>, 5> auth_names{{{plain, "PLAIN"},
                                                                                {login, "LOGIN"},
                                                                                {cram_md5, "CRAM-MD5"},
                                                                                {oauthbearer, "OAUTHBEARER"},
                                                                                {xoauth2, "XOAUTH2"}}};

bool takes_token(AuthMechanism mechanism) {
  return mechanism == oauthbearer || mechanism == xoauth2;
}

std::string encoded(std::string_view text) {
  return crypto::base64(std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string decoded(std::string_view text) {
  const auto bytes = crypto::decoded_base64(text);
  return bytes ? std::string(bytes->begin(), bytes->end()) : std::string();
}

bool is_offered(std::string_view offered, std::string_view name) {
  while (!offered.empty()) {
    const auto word = offered.substr(0, offered.find(' '));
    const bool is_same = std::equal(word.begin(), word.end(), name.begin(), name.end(),
                                    [](unsigned char a, char b) { return std::toupper(a) == b; });
    if (is_same) return true;
    offered.remove_prefix(std::min(word.size() + 1, offered.size()));
  }
  return false;
}

/// A name in the header of GS2 (RFC 5801, section 4).
std::string gs2_name(std::string_view name) {
  std::string text;
  for (const char c : name)
    text += c == ',' ? "=2C" : c == '=' ? "=3D" : std::string(1, c);
  return text;
}

std::string first_answer(AuthMechanism mechanism, const Credentials& credentials) {
  switch (mechanism) {
    case plain:
      return "\0"s + credentials.user + "\0"s + credentials.secret;
    case oauthbearer:
      return fmt::format(
          "n,a={},\x01host={}\x01port={}\x01"
          "auth=Bearer {}\x01\x01",
          gs2_name(credentials.user), credentials.host, credentials.port, credentials.secret);
    case xoauth2:
      return fmt::format(
          "user={}\x01"
          "auth=Bearer {}\x01\x01",
          credentials.user, credentials.secret);
    case login:
    case cram_md5:
      break;
  }
  return {};
}

std::string names_of(bool with_token) {
  std::string text;
  for (const auto& [mechanism, name] : auth_names) {
    if (takes_token(mechanism) == with_token) text.append(text.empty() ? "" : ", ").append(name);
  }
  return text;
}

}  // namespace

std::string_view auth_mechanism_name(AuthMechanism mechanism) {
  return auth_names.at(static_cast<std::size_t>(mechanism)).second;
}

std::vector<AuthMechanism> mechanisms_to_try(std::string_view offered, bool with_token) {
  std::vector<AuthMechanism> mechanisms;
  for (const auto& [mechanism, name] : auth_names) {
    if (takes_token(mechanism) == with_token && is_offered(offered, name)) mechanisms.push_back(mechanism);
  }
  return mechanisms;
}

std::string no_mechanism_text(std::string_view offered, bool with_token) {
  const auto* const other = with_token ? "with a password" : "with send.token_file or send.token_command";
  return fmt::format("the relay offers AUTH {} only, and mailroom knows {}; {} {}",
                     offered.empty() ? "without a mechanism" : offered, names_of(with_token), other,
                     names_of(!with_token));
}

std::string auth_command(AuthMechanism mechanism, const Credentials& credentials) {
  const auto answer = first_answer(mechanism, credentials);
  return fmt::format("AUTH {}{}{}", auth_mechanism_name(mechanism), answer.empty() ? "" : " ",
                     encoded(answer));
}

std::optional<std::string> auth_answer(AuthMechanism mechanism, int round, std::string_view challenge,
                                       const Credentials& credentials) {
  switch (mechanism) {
    case plain:
      // A relay that has not read the first answer asks for it.
      if (round == 0) return encoded(first_answer(mechanism, credentials));
      break;
    case login:
      if (round < 2) return encoded(round == 0 ? credentials.user : credentials.secret);
      break;
    case cram_md5:
      if (round == 0) {
        const auto proof = crypto::hmac_md5(credentials.secret, decoded(challenge));
        return encoded(fmt::format("{} {}", credentials.user, proof));
      }
      break;
    case oauthbearer:
      // The challenge is an error, and the refusal follows its acknowledgement (RFC 7628, section 3.2.3).
      if (round == 0) return encoded("\x01");
      break;
    case xoauth2:
      if (round == 0) return "";
      break;
  }
  return std::nullopt;
}

}  // namespace mailroom::smtp
