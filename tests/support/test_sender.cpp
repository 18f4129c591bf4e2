#include "support/test_sender.hpp"

#include "base/pattern.hpp"

namespace mailroom::test {
namespace {

std::vector<std::string> send(const std::vector<std::string>& options) {
  std::vector<std::string> words{"send", "-v"};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

std::map<std::string, std::string> to_relay(const std::string& relay,
                                            std::map<std::string, std::string> environment) {
  environment.emplace("MAILROOM_SEND_RELAY", relay);
  environment.emplace("MAILROOM_SEND_FROM", "Example <no-reply@app.example>");
  environment.emplace("MAILROOM_SEND_LINK", "https://app.example/{action}?token={token}");
  return environment;
}

/// What `form` catches; 0 if the mail has nothing of that form.
std::int64_t number_of(const TakenMail& mail, const Pattern& form) {
  const auto found = form.first(mail.message);
  return found ? std::stoll((*found)[1]) : 0;
}

}  // namespace

TestSender::TestSender(const std::string& conninfo, const std::string& relay,
                       const std::vector<std::string>& options,
                       std::map<std::string, std::string> environment)
    : TestConsumer(send(options), conninfo, to_relay(relay, std::move(environment))) {}

std::string token_of(const TakenMail& mail) {
  auto text = Pattern("=\r\n").replaced(mail.message, "");
  text = Pattern("=3D").replaced(text, "=");
  const auto found = Pattern("token=([A-Za-z0-9_-]{86})").first(text);
  return found ? (*found)[1] : "";
}

std::int64_t token_id_of(const TakenMail& mail) {
  static const Pattern form("Message-ID: <[^>@]*\\.([0-9]+)\\.mailroom@");
  return number_of(mail, form);
}

std::int64_t message_of(const TakenMail& mail) {
  static const Pattern form("Message-ID: <[^>@]*\\.m([0-9]+)\\.mailroom@");
  return number_of(mail, form);
}

}  // namespace mailroom::test
