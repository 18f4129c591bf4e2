// A client may say anything, cut anywhere: it is told the same, the same mails are stored, and none of them
// could end, or begin another, at a server that is less strict.

#include <vector>

#include "fuzz/fuzz.hpp"
#include "submission/conversation.hpp"

namespace mailroom::fuzz::fuzz_submission {
namespace {

constexpr TimePoint start{std::chrono::hours(1)};

struct Heard {
  std::string said{};
  std::vector<submission::SubmittedMail> mails{};
  std::ptrdiff_t held = 0;
};

/// What becomes of `bytes` if they come in pieces of so many.
Heard talk(std::string_view bytes, std::size_t piece, bool needs_login) {
  Heard heard;
  const submission::ServiceTerms terms{
      .host = "mail.shop.example", .max_size = 2000, .max_recipients = 3, .local_to = "ops@shop.example"};
  const submission::ServiceAnswers service{
      .terms_of = [](const std::string&) { return submission::RoleTerms{.senders = {"@shop.example"}}; },
      .closed = [] { return std::nullopt; },
      .is_over_limit = [](const std::string&) { return false; },
      .refused = [](const submission::Reply&) {},
      .hold =
          [&heard](std::ptrdiff_t change) {
            heard.held += change;
            return heard.held <= 100'000;
          },
      .random = [] { return std::string("r4nd0m"); },
      .now = [] { return Moment(std::chrono::hours(500'000)); }};
  submission::Conversation conversation(terms, service,
                                        {.peer = "127.0.0.1",
                                         .is_secure = true,
                                         .needs_login = needs_login,
                                         .role = needs_login ? "" : "shop"});
  using Wish = submission::Conversation::Wish;
  std::string waiting;
  while (!bytes.empty() && !conversation.is_over()) {
    waiting += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (bool goes_on = true; goes_on;) {
      std::string_view left = waiting;
      const auto wish = conversation.take(left, false, start);
      waiting.erase(0, waiting.size() - left.size());
      goes_on = wish == Wish::store || wish == Wish::log_in;
      if (wish == Wish::store) {
        heard.mails.push_back(conversation.take_mail());
        conversation.stored("1", start);
      } else if (wish == Wish::log_in) {
        const auto login = conversation.take_login();
        require(!login.role.empty() && !login.password.empty(), "a login has a name and a password");
        conversation.logged_in(login.role, start);
      }
    }
  }
  heard.said = conversation.take_output();
  conversation.refuse(submission::replies::stopping, start);
  return heard;
}

void check_mail(const submission::SubmittedMail& mail) {
  require(!mail.recipients.empty() && !mail.key.empty(), "a mail has recipients and a key");
  require(mail.raw.starts_with("Received: ") && mail.raw.ends_with("\r\n"), "a mail is whole");
  for (std::size_t i = 0; i < mail.raw.size(); ++i) {
    require(mail.raw[i] != '\0', "a mail has no NUL");
    require(mail.raw[i] != '\n' || (i > 0 && mail.raw[i - 1] == '\r'), "no LF is alone");
    require(mail.raw[i] != '\r' || (i + 1 < mail.raw.size() && mail.raw[i + 1] == '\n'), "no CR is alone");
  }
}

void check_replies(std::string_view said) {
  while (!said.empty()) {
    const auto end = said.find("\r\n");
    require(end != std::string_view::npos && end >= 4, "a reply is a line");
    const auto line = said.substr(0, end);
    require(line.find_first_not_of("0123456789") == 3 && (line[3] == ' ' || line[3] == '-'), "it has a code");
    require(line.find_first_of("\r\n") == std::string_view::npos, "no line end is within it");
    said.remove_prefix(end + 2);
  }
}

int run(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  const auto text = text_of(data, size);
  const auto by = static_cast<std::uint8_t>(text.front());
  const bool needs_login = by % 2 == 1;
  const auto whole = talk(text.substr(1), size, needs_login);
  const auto cut = talk(text.substr(1), 1 + by / 2 % 16, needs_login);
  require(whole.said == cut.said, "the same is told however it is cut");
  require(whole.mails.size() == cut.mails.size(), "the same mails are stored");
  require(whole.held == 0 && cut.held == 0, "no memory stays counted");
  check_replies(whole.said);
  for (std::size_t i = 0; i < whole.mails.size(); ++i) {
    check_mail(whole.mails[i]);
    require(whole.mails[i].raw == cut.mails[i].raw, "a mail is the same");
  }
  return 0;
}

const Target target("submission", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_submission
