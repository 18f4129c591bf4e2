#include "smtp/dialogue.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace mailroom {
namespace {

constexpr Milliseconds patience_with_quit{1000};

std::optional<SmtpStep> step_of(std::string_view verb) {
  constexpr std::array<std::pair<std::string_view, SmtpStep>, 8> verbs{{{"EHLO", SmtpStep::hello},
                                                                        {"HELO", SmtpStep::hello},
                                                                        {"STARTTLS", SmtpStep::starttls},
                                                                        {"AUTH", SmtpStep::auth},
                                                                        {"NOOP", SmtpStep::noop},
                                                                        {"MAIL", SmtpStep::mail},
                                                                        {"RCPT", SmtpStep::rcpt},
                                                                        {"DATA", SmtpStep::data}}};
  const auto* const known =
      std::find_if(verbs.begin(), verbs.end(), [&](const auto& entry) { return entry.first == verb; });
  if (known == verbs.end()) return std::nullopt;
  return known->second;
}

}  // namespace

void Dialogue::begin(std::string_view message, bool needs_smtputf8, TimePoint now) {
  exchange_ = {};
  exchange_.reused = mails_ > 0;
  reply_.clear();
  rest_ = message;
  needs_smtputf8_ = needs_smtputf8;
  quitting_ = false;
  overdue_at_ = now + limits_.timeout;
}

void Dialogue::connecting(TimePoint now) {
  mails_ = 0;
  authenticated_ = false;
  offers_smtputf8_ = false;
  exchange_.reused = false;
  quitting_ = false;
  overdue_at_ = now + limits_.timeout;
}

void Dialogue::step_to(SmtpStep step, TimePoint now) {
  exchange_.step = step;
  exchange_.code = 0;
  quitting_ = false;  // the connection before this one
  reply_.clear();
  overdue_at_ = now + limit();
}

void Dialogue::sent(std::string_view bytes, TimePoint now) {
  const auto verb = bytes.substr(0, bytes.find_first_of(" \r\n"));
  // The answer to a challenge of AUTH is base64, which may look like a verb.
  const bool answers_challenge = exchange_.step == SmtpStep::auth && exchange_.code == 334;
  if (verb == "QUIT" && !answers_challenge) {
    quitting_ = true;
    overdue_at_ = now + patience_with_quit;
    return;
  }
  const auto step = answers_challenge ? SmtpStep::auth : step_of(verb);
  if (!step) return;
  if (*step == SmtpStep::hello) offers_smtputf8_ = false;
  if (*step == SmtpStep::mail) ++mails_;
  step_to(*step, now);
}

bool Dialogue::received(std::string_view line) {
  if (quitting_) return true;
  if (exchange_.step == SmtpStep::hello && line.size() > 4 && line.substr(4, 8) == "SMTPUTF8") {
    offers_smtputf8_ = true;
  }
  // Lines after a complete reply to the same step belong to no command.
  if (exchange_.code != 0 || !reply_.add(line)) return true;
  exchange_.code = reply_.code();
  if (exchange_.step == SmtpStep::auth && exchange_.code / 100 == 2) authenticated_ = true;
  const bool is_logged_in = exchange_.step == SmtpStep::mail || exchange_.step == SmtpStep::noop;
  return !is_logged_in || exchange_.code / 100 != 2 || is_usable();
}

bool Dialogue::is_usable() {
  // libcurl sends without authentication, and without an error, if the relay offers no AUTH. It also sends
  // UTF-8 addresses if the relay does not offer SMTPUTF8. The reply to MAIL is the last moment to prevent
  // both.
  if (limits_.wants_auth && !authenticated_) {
    exchange_.stop = SmtpStop::no_auth;
  } else if (needs_smtputf8_ && !offers_smtputf8_) {
    exchange_.stop = SmtpStop::no_smtputf8;
  }
  return exchange_.stop == SmtpStop::none;
}

std::size_t Dialogue::read(char* to, std::size_t room, TimePoint now) {
  const auto size = std::min(room, rest_.size());
  std::memcpy(to, rest_.data(), size);
  rest_.remove_prefix(size);
  step_to(size == 0 ? SmtpStep::end : SmtpStep::body, now);
  return size;
}

bool Dialogue::is_overdue(TimePoint now) {
  if (now < overdue_at_) return false;
  if (!quitting_ && exchange_.stop == SmtpStop::none) exchange_.stop = SmtpStop::timed_out;
  return true;
}

Milliseconds Dialogue::limit() const {
  return exchange_.step == SmtpStep::end ? limits_.at_end : limits_.timeout;
}

}  // namespace mailroom
