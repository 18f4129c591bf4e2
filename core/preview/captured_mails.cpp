// Reads a mail once for the list, and again when it is shown.

#include "preview/captured_mails.hpp"

#include <fstream>
#include <iterator>
#include <sstream>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "mail/message.hpp"

namespace mailroom::preview {
namespace {

std::optional<std::string> mail_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string header_in(const MailView& mail, std::string_view name) {
  for (const auto& [header, value] : mail.headers) {
    if (header == name) return value;
  }
  return {};
}

}  // namespace

CapturedMails::CapturedMails(const std::string& directory)
    : directory_(directory + "/new"), title_("captured in " + shown_text(directory)), watch_(directory_) {
  poll();
}

std::string CapturedMails::title() const {
  return title_;
}

PreviewChange CapturedMails::poll() {
  const auto changed = watch_.changes();
  for (const auto& file : changed)
    read(file);
  return changed.empty() ? PreviewChange::none : PreviewChange::list;
}

void CapturedMails::read(const std::string& file) {
  PreviewItem item{.id = file, .title = "(cannot be read)", .locales = {""}};
  auto text = mail_text(directory_ + "/" + file);
  try {
    if (text) {
      const auto mail = read_mail(std::move(*text));
      item.title = mail.subject.empty() ? "(no subject)" : mail.subject;
      item.note = header_in(mail, "Delivered-To");
    }
  } catch (const Error& error) {
    item.problem = error.what();
  }
  const std::lock_guard lock(mutex_);
  if (!watch_.has(file)) {
    mails_.erase(file);
    return;
  }
  mails_[file] = std::move(item);
  if (mails_.size() > most) mails_.erase(mails_.begin());
}

std::vector<PreviewItem> CapturedMails::items() {
  const std::lock_guard lock(mutex_);
  std::vector<PreviewItem> items;
  for (auto mail = mails_.rbegin(); mail != mails_.rend(); ++mail)
    items.push_back(mail->second);
  return items;
}

PreviewResult CapturedMails::show(const PreviewRequest& request) {
  PreviewResult result;
  {
    const std::lock_guard lock(mutex_);
    if (mails_.count(request.item) == 0) {
      result.problem = "this mail is not there any more";
      return result;
    }
  }
  try {
    auto text = mail_text(directory_ + "/" + request.item);
    if (!text) throw Error(ExitCode::failed, "the mail cannot be read");
    result.mail = std::make_shared<const MailView>(read_mail(std::move(*text)));
  } catch (const Error& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace mailroom::preview
