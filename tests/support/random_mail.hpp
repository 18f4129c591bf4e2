#pragma once

#include <random>
#include <string>
#include <vector>

#include "mail/message.hpp"

namespace mailroom::test {

/// The mail of a token, and what the builder has for all.
struct RandomMail {
  mail::Mailbox from;
  std::vector<mail::Mailbox> reply_to;  ///< one, or none
  std::vector<mail::ExtraHeader> headers;
  mail::Address to;
  std::string queue;
  Moment date{};
  std::int64_t token = 0;
  std::string subject;
  std::string text;
  std::optional<std::string> html;

  mail::MailContent content() const {
    mail::MailContent content{.date = date,
                              .queue = queue,
                              .key = "0123456789abcdef",
                              .token = token,
                              .to = {{"", to}},
                              .subject = subject,
                              .text = text,
                              .html = html};
    return content;
  }
  bool is_utf8() const {
    return mail::needs_smtputf8(to) || mail::needs_smtputf8(from.address) ||
           (!reply_to.empty() && mail::needs_smtputf8(reply_to.front().address));
  }
};

/// Makes mails of hostile text from a seed: other scripts, marks of direction, emoji, what looks encoded,
/// long words, dots and blanks at the ends of lines.
class MailMaker {
 public:
  explicit MailMaker(unsigned seed) : random_(seed) {}

  RandomMail make() {
    RandomMail mail;
    mail.from = {trimmed(line(4)), address()};
    if (chance(3)) mail.reply_to = {{trimmed(line(3)), address()}};
    if (chance(3)) mail.headers = {{"X-One", "a b  c"}, {"X-Two", words()}};
    mail.to = address();
    mail.queue = pick({"mailroom", "a queue", "gr\u00fc\u00dfe.2", "--=_", "%s<>\""});
    mail.date = Moment(std::chrono::seconds(number(0, 4'000'000'000)));
    mail.token = number(0, std::numeric_limits<std::int64_t>::max());
    mail.subject = chance(100) ? long_login() : line(12);
    mail.text = body();
    if (!chance(4)) mail.html = "<p>" + body() + "</p>";
    return mail;
  }

  /// A message with several recipients, a sender and headers of its own, and attachments.
  mail::MailContent make_message() {
    mail::MailContent content{.date = Moment(std::chrono::seconds(number(0, 4'000'000'000))),
                              .queue = "mailroom",
                              .key = "0123456789abcdef",
                              .message = number(1, 1'000'000)};
    content.to = mailboxes(static_cast<int>(number(0, 4)));
    content.cc = mailboxes(static_cast<int>(number(0, 3)));
    if (chance(2)) content.sender = mail::Mailbox{trimmed(line(3)), address()};
    if (chance(2)) content.reply_to = mailboxes(static_cast<int>(number(1, 2)));
    if (chance(2))
      content.headers = {{"List-Unsubscribe", "<https://app.example/u?a=1&b=2>"},
                         {"List-Unsubscribe-Post", "List-Unsubscribe=One-Click"},
                         {"X-Two", words()}};
    content.subject = line(8);
    if (!chance(4)) content.text = body();
    if (!content.text || !chance(3)) content.html = "<p>" + body() + "</p>";
    for (auto count = number(0, 4); count > 0; --count)
      content.attachments.push_back(attachment(static_cast<int>(count)));
    for (const auto& file : content.attachments) {
      if (content.html && !file.content_id.empty() && chance(2))
        *content.html += "<img src=\"cid:" + file.content_id + "\">";
    }
    return content;
  }

 private:
  std::vector<mail::Mailbox> mailboxes(int count) {
    std::vector<mail::Mailbox> all;
    for (; count > 0; --count)
      all.push_back({trimmed(line(3)), address()});
    return all;
  }

  mail::Attachment attachment(int number_of_it) {
    mail::Attachment made{
        .name = chance(5) ? "" : trimmed(line(3)) + pick({".pdf", ".png", "", ".tar.gz"}),
        .content_type = pick({"", "application/pdf", "image/png", "text/csv; charset=utf-8",
                              "text/plain; charset=\"us-ascii\"; format=flowed", "application/vnd.a+json"}),
        .content_id = chance(2) ? pick({"logo", "a.b+c@d.example", "x-"}) + std::to_string(number_of_it) : "",
        .bytes = {}};
    if (made.name.size() > 255) made.name.resize(0);
    for (auto size = number(0, chance(10) ? 200'000 : 300); size > 0; --size)
      made.bytes += static_cast<char>(number(0, 255));
    return made;
  }

  bool chance(int one_in) { return number(1, one_in) == 1; }
  std::int64_t number(std::int64_t min, std::int64_t max) {
    return std::uniform_int_distribution<std::int64_t>(min, max)(random_);
  }
  std::string pick(const std::vector<std::string>& all) {
    return all[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(all.size()) - 1))];
  }

  std::string piece() {
    static const std::vector<std::string> pieces{"word",
                                                 "another",
                                                 "7",
                                                 "=",
                                                 "=20",
                                                 "=3D",
                                                 "=?utf-8?Q?x?=",
                                                 "?=",
                                                 "_",
                                                 ".",
                                                 "..",
                                                 "From ",
                                                 "<script>",
                                                 "alert('x')",
                                                 "</p>",
                                                 "&amp;",
                                                 "\"",
                                                 "\\",
                                                 "(",
                                                 ")",
                                                 ",",
                                                 ";",
                                                 ":",
                                                 "@",
                                                 "--",
                                                 "--=_",
                                                 "\u00fc\u00df",
                                                 "\u05e9\u05dc\u05d5\u05dd",
                                                 "\u200f",
                                                 "\u202e",
                                                 "\u200b",
                                                 "\u65e5\u672c\u8a9e",
                                                 "\U0001f469\u200d\U0001f4bb",
                                                 "e\u0301",
                                                 "\u0085",
                                                 "\u2028",
                                                 "\ufeff",
                                                 std::string(80, 'x'),
                                                 "supercalifragilistic"};
    return chance(200) ? std::string(1200, 'y') : pick(pieces);
  }

  /// No line end, and no other control character of ASCII.
  std::string line(int longest) {
    std::string text;
    for (auto count = number(0, longest); count > 0; --count) {
      text += piece();
      if (chance(2)) text += chance(8) ? "   " : " ";
    }
    return text;
  }

  std::string body() {
    std::string text;
    for (auto count = number(0, 12); count > 0; --count)
      text += line(10) + pick({"\n", "\n", "\n", "\r\n", " \n", "\t\n", "\n\n", "\r", "", ".\n"});
    if (chance(50)) text += long_login();
    return text;
  }

  std::string long_login() {
    const auto unit = piece() + pick({"x", " ", "\u00fc", "="});
    std::string login;
    while (login.size() < 10'000)
      login += unit;
    return login;
  }

  std::string words() {
    std::string text = "w";
    for (auto count = number(0, 40); count > 0; --count)
      text += pick({" a", " bc", " =?", " long-word-number", " {\"json\": 1}"});
    return text;
  }

  mail::Address address() {
    return {pick({"a", "user.name+tag", "gr\u00fc\u00dfe", std::string(64, 'l'), "!#$%&'*+-/=?^_`{|}~"}),
            pick({"b.example", "xn--bcher-kva.example", std::string(60, 'd') + ".example"})};
  }

  static std::string trimmed(const std::string& text) {
    const auto start = text.find_first_not_of(' ');
    return start == std::string::npos ? "" : text.substr(start, text.find_last_not_of(' ') - start + 1);
  }

  std::mt19937_64 random_;
};

}  // namespace mailroom::test
