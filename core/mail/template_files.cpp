// Reads regular files up to a limit, and names the file and the reason where it cannot.

#include "mail/template_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr auto directory_hint = "send.templates or MAILROOM_SEND_TEMPLATES names the directory";

[[noreturn]] void throw_unreadable(const std::string& path, const std::string& reason) {
  throw Error(ExitCode::configuration,
              fmt::format("cannot read the template {}: {}", shown_text(path), reason), directory_hint);
}

/// An open regular file.
class TemplateFile {
 public:
  explicit TemplateFile(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw_unreadable(path_, std::strerror(errno));
  }
  ~TemplateFile() { close(fd_); }
  TemplateFile(const TemplateFile&) = delete;
  TemplateFile& operator=(const TemplateFile&) = delete;

  std::string read_all() const {
    struct stat status {};
    if (fstat(fd_, &status) != 0) throw_unreadable(path_, std::strerror(errno));
    if (!S_ISREG(status.st_mode)) throw_unreadable(path_, "it is not a file");
    std::string text;
    std::array<char, 8192> chunk{};
    while (text.size() <= largest_template) {
      const auto count = read(fd_, chunk.data(), chunk.size());
      if (count == 0) return text;
      if (count > 0) text.append(chunk.data(), static_cast<std::size_t>(count));
      if (count < 0 && errno != EINTR) throw_unreadable(path_, std::strerror(errno));
    }
    throw_unreadable(path_, fmt::format("it is larger than {} KiB", largest_template / 1024));
  }

 private:
  const std::string& path_;
  int fd_;
};

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  std::filesystem::directory_iterator entries(directory, failure);
  for (; !failure && entries != std::filesystem::directory_iterator(); entries.increment(failure))
    names.push_back(entries->path().filename().string());
  if (failure) {
    throw Error(ExitCode::configuration,
                fmt::format("cannot read the template directory {}: {}", shown_text(directory),
                            std::strerror(failure.value())),
                directory_hint);
  }
  std::sort(names.begin(), names.end());
  return names;
}

constexpr std::string_view activation_text = R"(Hello {{login}},

An account was created with this address. To activate it, open this link:

{{link}}

The link is valid for {{expires_in}}, until {{expires_at}}.

If you did not ask for an account, ignore this mail: without the link nothing is activated.
)";

constexpr std::string_view activation_html = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Activate your account</title>
</head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 36em; margin: 2em auto; padding: 0 1em">
<p>Hello {{login}},</p>
<p>An account was created with this address. To activate it, open this link:</p>
<p><a href="{{link}}" style="overflow-wrap: anywhere">{{link}}</a></p>
<p>The link is valid for {{expires_in}}, until {{expires_at}}.</p>
<p>If you did not ask for an account, ignore this mail: without the link nothing is activated.</p>
</body>
</html>
)";

constexpr std::string_view recovery_text = R"(Hello {{login}},

Someone asked for a new password for your account. To choose one, open this link:

{{link}}{{#code}}

You are asked for this code: {{code}}{{/code}}

The link is valid for {{expires_in}}, until {{expires_at}}.

If you did not ask for this, ignore this mail: your password stays as it is.
)";

constexpr std::string_view recovery_html = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Choose a new password</title>
</head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 36em; margin: 2em auto; padding: 0 1em">
<p>Hello {{login}},</p>
<p>Someone asked for a new password for your account. To choose one, open this link:</p>
<p><a href="{{link}}" style="overflow-wrap: anywhere">{{link}}</a></p>{{#code}}
<p>You are asked for this code: <strong>{{code}}</strong></p>{{/code}}
<p>The link is valid for {{expires_in}}, until {{expires_at}}.</p>
<p>If you did not ask for this, ignore this mail: your password stays as it is.</p>
</body>
</html>
)";

}  // namespace

bool is_template_file(const std::string& name) {
  const auto& known = builtin_templates();
  return std::any_of(known.begin(), known.end(), [&](const auto& builtin) { return builtin.file == name; });
}

TemplateFiles read_template_files(const std::string& directory) {
  TemplateFiles files{.directory = directory, .texts = {}, .ignored = {}};
  for (const auto& name : names_in(directory)) {
    if (is_template_file(name) || name.ends_with(".mustache")) {
      const auto path = (std::filesystem::path(directory) / name).string();
      files.texts.emplace(name, TemplateFile(path).read_all());
    } else if (!name.starts_with('.') && !name.ends_with('~')) {
      files.ignored.push_back(name);
    }
  }
  return files;
}

const std::array<BuiltinTemplate, 6>& builtin_templates() {
  static const std::array<BuiltinTemplate, 6> all{
      {{MailAction::activation, MailPart::subject, "activation.subject", "Activate your account\n"},
       {MailAction::activation, MailPart::text, "activation.txt", activation_text},
       {MailAction::activation, MailPart::html, "activation.html", activation_html},
       {MailAction::recovery, MailPart::subject, "recovery.subject", "Choose a new password\n"},
       {MailAction::recovery, MailPart::text, "recovery.txt", recovery_text},
       {MailAction::recovery, MailPart::html, "recovery.html", recovery_html}}};
  return all;
}

const BuiltinTemplate& builtin_template(MailAction action, MailPart part) {
  const auto& all = builtin_templates();
  return *std::find_if(all.begin(), all.end(),
                       [&](const auto& builtin) { return builtin.action == action && builtin.part == part; });
}

}  // namespace mailroom
