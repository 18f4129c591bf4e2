// IMAP: the mails that nobody has seen. Fetched by BODY.PEEK, which marks nothing; UIDs are of one selection,
// so a folder that was made anew in between is listed anew.

#include <fmt/format.h>
#include <map>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "mailbox/connection.hpp"
#include "mailbox/imap_syntax.hpp"

namespace mailroom::mailbox {
namespace {

constexpr std::size_t most_listed = 2000;
constexpr std::size_t uids_in_command = 200;

const config::UrlForm imap_form{.subject = "--imap",
                                .schemes = {{"imaps", 993}, {"imap", 143}},
                                .password_key = "bounce.password_file",
                                .hint = "write it as imaps://user@host/INBOX; an @ in the user is %40"};

std::string require_folder(const std::string& name) {
  auto quoted = quoted_folder(name);
  if (quoted) return *quoted;
  throw Error(ExitCode::configuration,
              fmt::format("the folder '{}' has letters that are not ASCII", shown_text(name)),
              "name a folder of ASCII letters");
}

class ImapMailbox final : public Mailbox {
 public:
  ImapMailbox(MailServer server, const std::string& folder, const FilingRules& rules, IsStopped is_stopped)
      : connection_(std::move(server), std::move(is_stopped)),
        folder_(require_folder(folder.empty() ? "INBOX" : folder)),
        rules_(rules) {
    for (const auto* name : {&rules.done_folder, &rules.other_folder})
      require_folder(*name);
  }

  std::vector<std::string> list() override;
  void fetch(std::span<const std::string> names, const Visit& visit) override;
  void file(const std::vector<FiledMail>& mails) override;
  std::chrono::seconds pause() const override { return std::chrono::seconds(5); }

 private:
  struct Reply {
    bool is_ok = false;
    std::string words{};
  };
  /// Called with each untagged line, and the literal within it: the text of the line goes on behind that.
  using OnLine = std::function<void(const std::string& line, std::optional<std::string> literal)>;

  Reply ask(const std::string& command, const OnLine& on_line = {});
  void require(const std::string& command, const OnLine& on_line = {});
  void select();
  void store(const std::vector<std::string>& uids, const char* flags);
  void move(const std::vector<std::string>& uids, const std::string& folder);
  void copy(const std::string& command, const std::string& folder);
  void remove(const std::vector<std::string>& uids);

  MailConnection connection_;
  std::string folder_;
  FilingRules rules_;
  int tags_ = 0;
  bool moves_ = false;     ///< the server has MOVE (RFC 6851)
  bool expunges_ = false;  ///< and UID EXPUNGE (RFC 4315)
};

ImapMailbox::Reply ImapMailbox::ask(const std::string& command, const OnLine& on_line) {
  const auto tag = fmt::format("m{}", ++tags_);
  connection_.send(tag + " " + command);
  for (;;) {
    auto line = connection_.line();
    if (const auto end = tagged_end(line, tag))
      return {.is_ok = end->is_ok, .words = std::string(end->words)};
    std::optional<std::string> literal;
    for (auto size = literal_size(line); size; size = literal_size(line)) {
      auto bytes = connection_.bytes(*size, longest_mail);
      if (!literal) literal = std::move(bytes);
      line.erase(line.rfind('{'));
      line += connection_.line();
    }
    if (line.starts_with("* BYE")) connection_.refuse("ends the connection", line);
    if (on_line) on_line(line, std::move(literal));
  }
}

void ImapMailbox::require(const std::string& command, const OnLine& on_line) {
  const auto reply = ask(command, on_line);
  if (!reply.is_ok)
    connection_.refuse(fmt::format("refuses {}", command.substr(0, command.find_first_of("0123456789\"("))),
                       reply.words);
}

void ImapMailbox::select() {
  connection_.open();
  require("CAPABILITY", [&](const std::string& line, const auto& /*literal*/) {
    if (!line.starts_with("* CAPABILITY")) return;
    moves_ = has_word(line, "MOVE") || has_word(line, "IMAP4rev2");
    expunges_ = has_word(line, "UIDPLUS") || has_word(line, "IMAP4rev2");
  });
  const auto reply = ask("SELECT " + folder_);
  if (!reply.is_ok) connection_.refuse(fmt::format("has no folder {}", folder_), reply.words);
  if (lower_case(reply.words).find("[read-only]") != std::string::npos)
    connection_.refuse(
        fmt::format("lets this user only read {}: what is on record could not be marked", folder_));
}

std::vector<std::string> ImapMailbox::list() {
  if (!connection_.is_open()) select();
  std::vector<std::string> names;
  require("UID SEARCH UNSEEN UNDELETED", [&](const std::string& line, const auto& /*literal*/) {
    for (const auto uid : searched_ids(line))
      if (names.size() < most_listed) names.push_back(std::to_string(uid));
  });
  return names;
}

void ImapMailbox::fetch(std::span<const std::string> names, const Visit& visit) {
  for (std::size_t i = 0; i < names.size(); i += uids_in_command) {
    const auto part = names.subspan(i, std::min(uids_in_command, names.size() - i));
    const auto command = fmt::format("UID FETCH {} (UID BODY.PEEK[]<0.{}>)",
                                     uid_set({part.begin(), part.end()}), longest_mail);
    require(command, [&](const std::string& line, std::optional<std::string> literal) {
      const auto uid = fetched_uid(line);
      if (!literal) literal = fetched_text(line);
      if (uid && literal) visit(std::to_string(*uid), std::move(*literal));
    });
  }
}

void ImapMailbox::file(const std::vector<FiledMail>& mails) {
  std::map<Filing, std::vector<std::string>> uids;
  for (const auto& mail : mails)
    uids[mail.filing == Filing::done ? Filing::done : Filing::other].push_back(mail.name);
  for (const auto& [filing, all] : uids) {
    const bool is_done = filing == Filing::done;
    const auto& folder = is_done ? rules_.done_folder : rules_.other_folder;
    for (std::size_t i = 0; i < all.size(); i += uids_in_command) {
      const std::vector<std::string> part(
          all.begin() + static_cast<std::ptrdiff_t>(i),
          all.begin() + static_cast<std::ptrdiff_t>(std::min(i + uids_in_command, all.size())));
      if (is_done && rules_.removes) {
        remove(part);
      } else if (!folder.empty()) {
        move(part, require_folder(folder));
      } else {
        store(part, is_done ? "\\Seen" : "\\Seen \\Flagged");
      }
    }
  }
}

void ImapMailbox::store(const std::vector<std::string>& uids, const char* flags) {
  require(fmt::format("UID STORE {} +FLAGS.SILENT ({})", uid_set(uids), flags));
}

/// Makes the folder when it is missing.
void ImapMailbox::copy(const std::string& command, const std::string& folder) {
  const auto reply = ask(command);
  if (reply.is_ok) return;
  if (lower_case(reply.words).find("[trycreate]") == std::string::npos)
    connection_.refuse(fmt::format("does not move mails to {}", folder), reply.words);
  require("CREATE " + folder);
  require(command);
}

/// Without MOVE the copy comes first: a connection that is cut leaves two mails, and none lost.
void ImapMailbox::move(const std::vector<std::string>& uids, const std::string& folder) {
  const auto set = uid_set(uids);
  if (moves_) return copy(fmt::format("UID MOVE {} {}", set, folder), folder);
  copy(fmt::format("UID COPY {} {}", set, folder), folder);
  remove(uids);
}

/// EXPUNGE alone would remove what others have marked as well, so without UID EXPUNGE the mark has to do.
void ImapMailbox::remove(const std::vector<std::string>& uids) {
  store(uids, "\\Deleted");
  if (expunges_) require(fmt::format("UID EXPUNGE {}", uid_set(uids)));
}

}  // namespace

std::unique_ptr<Mailbox> open_imap(std::string_view url, const FilingRules& rules,
                                   const config::Settings& settings, IsStopped is_stopped) {
  std::string folder;
  auto server = read_mail_server(url, imap_form, settings, folder);
  return std::make_unique<ImapMailbox>(std::move(server), folder, rules, std::move(is_stopped));
}

}  // namespace mailroom::mailbox
