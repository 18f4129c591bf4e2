// POP3 (RFC 1939): a session lists what is there, and what it has marked to be removed is gone when it has
// ended well. What is left is known by its unique id for as long as this process runs.

#include <fmt/format.h>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mailbox/connection.hpp"

namespace mailroom::mailbox {
namespace {

constexpr std::size_t most_in_session = 500;  ///< a cut session removes none of its mails
constexpr int lines_of_long_mail = 20'000;

const config::UrlForm pop3_form{.subject = "--pop3",
                                .schemes = {{"pop3s", 995}, {"pop3", 110}},
                                .password_key = "bounce.password_file",
                                .hint = "write it as pop3s://user@host; an @ in the user is %40",
                                .has_path = false};

class Pop3Mailbox final : public Mailbox {
 public:
  Pop3Mailbox(MailServer server, IsStopped is_stopped)
      : connection_(std::move(server), std::move(is_stopped)) {}

  std::vector<std::string> list() override;
  void fetch(std::span<const std::string> names, const Visit& visit) override;
  void file(const std::vector<FiledMail>& mails) override;
  void finish() override;
  std::chrono::seconds pause() const override { return std::chrono::seconds(30); }

 private:
  /// False if the server says -ERR.
  bool ask(const std::string& command);
  void require(const std::string& command);
  /// The lines of an answer up to its dot.
  void each_line(const std::function<void(std::string_view line)>& visit);
  /// Two words of each line: the number of a mail, and what the command says of it.
  std::map<std::string, std::string> table(const std::string& command);

  MailConnection connection_;
  std::map<std::string, std::string> ids_;    ///< of the session, by the number of the mail
  std::map<std::string, std::string> sizes_;  ///< the same
  std::set<std::string> left_;                ///< ids of mails that are not ours
};

bool Pop3Mailbox::ask(const std::string& command) {
  connection_.send(command);
  const auto line = connection_.line();
  if (line.starts_with("+OK")) return true;
  if (!line.starts_with("-ERR")) connection_.refuse("says what is no answer of POP3", line);
  return false;
}

void Pop3Mailbox::require(const std::string& command) {
  if (!ask(command)) connection_.refuse(fmt::format("refuses {}", command.substr(0, command.find(' '))));
}

void Pop3Mailbox::each_line(const std::function<void(std::string_view line)>& visit) {
  for (auto line = connection_.line(); line != "."; line = connection_.line())
    visit(line.starts_with('.') ? std::string_view(line).substr(1) : std::string_view(line));
}

std::map<std::string, std::string> Pop3Mailbox::table(const std::string& command) {
  std::map<std::string, std::string> table;
  require(command);
  each_line([&](std::string_view line) {
    const auto blank = line.find(' ');
    if (blank != std::string_view::npos)
      table[std::string(line.substr(0, blank))] = std::string(trimmed(line.substr(blank + 1)));
  });
  return table;
}

std::vector<std::string> Pop3Mailbox::list() {
  connection_.close();
  connection_.open();
  ids_ = table("UIDL");
  sizes_ = table("LIST");
  std::map<int, std::string> waiting;
  for (const auto& [number, id] : ids_) {
    const auto place = parse_number<int>(number);
    if (place && !left_.contains(id)) waiting[*place] = number;
  }
  std::set<std::string> still;
  for (const auto& [number, id] : ids_)
    if (left_.contains(id)) still.insert(id);
  left_ = std::move(still);
  std::vector<std::string> names;
  for (const auto& [place, number] : waiting)
    if (names.size() < most_in_session) names.push_back(number);
  if (names.empty()) finish();
  return names;
}

void Pop3Mailbox::fetch(std::span<const std::string> names, const Visit& visit) {
  for (const auto& name : names) {
    const auto size = parse_number<std::uint64_t>(sizes_[name]).value_or(0);
    const bool is_long = size > longest_mail;
    if (!ask(is_long ? fmt::format("TOP {} {}", name, lines_of_long_mail) : "RETR " + name)) continue;
    std::string bytes;
    each_line([&](std::string_view line) {
      if (bytes.size() < longest_mail) bytes.append(line).append("\r\n");
    });
    bytes.resize(std::min(bytes.size(), longest_mail));
    visit(name, std::move(bytes));
  }
}

void Pop3Mailbox::file(const std::vector<FiledMail>& mails) {
  for (const auto& mail : mails) {
    if (mail.filing == Filing::other) {
      left_.insert(ids_[mail.name]);
    } else {
      require("DELE " + mail.name);
    }
  }
}

void Pop3Mailbox::finish() {
  require("QUIT");
  connection_.close();
}

}  // namespace

std::unique_ptr<Mailbox> open_pop3(std::string_view url, const config::Settings& settings,
                                   IsStopped is_stopped) {
  std::string path;
  auto server = read_mail_server(url, pop3_form, settings, path);
  return std::make_unique<Pop3Mailbox>(std::move(server), std::move(is_stopped));
}

}  // namespace mailroom::mailbox
