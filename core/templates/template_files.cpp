// Reads regular files up to a limit, and names the file and the reason where it cannot.

#include "templates/template_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "templates/template_data.hpp"

namespace mailroom::templates {
namespace {

constexpr std::string_view example_suffix = ".example.json";
constexpr auto directory_hint = "send.templates or MAILROOM_SEND_TEMPLATES names the directory";

/// A file that may be read, and how messages name it.
struct FileKind {
  std::string_view name;
  std::size_t largest;  ///< bytes
  std::string hint;
};

/// An open regular file.
class SmallFile {
 public:
  SmallFile(const std::string& path, FileKind kind)
      : path_(path), kind_(std::move(kind)), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw_unreadable(std::strerror(errno));
  }
  ~SmallFile() { close(fd_); }
  SmallFile(const SmallFile&) = delete;
  SmallFile& operator=(const SmallFile&) = delete;

  std::string read_all() const {
    struct stat status {};
    if (fstat(fd_, &status) != 0) throw_unreadable(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) throw_unreadable("it is not a file");
    std::string text;
    std::array<char, 8192> chunk{};
    while (text.size() <= kind_.largest) {
      const auto count = read(fd_, chunk.data(), chunk.size());
      if (count == 0) return text;
      if (count > 0) text.append(chunk.data(), static_cast<std::size_t>(count));
      if (count < 0 && errno != EINTR) throw_unreadable(std::strerror(errno));
    }
    throw_unreadable(fmt::format("it is larger than {} KiB", kind_.largest / 1024));
  }

 private:
  [[noreturn]] void throw_unreadable(const std::string& reason) const {
    throw Error(ExitCode::configuration,
                fmt::format("cannot read {} {}: {}", kind_.name, shown_text(path_), reason), kind_.hint);
  }

  const std::string& path_;
  FileKind kind_;
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

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_template_name(std::string_view name) {
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_';
  });
}

/// True for a language of two or three letters, and further tags (RFC 5646): `zh-hant-tw`.
bool is_locale(std::string_view tag) {
  constexpr std::size_t longest = 35;
  const auto language = tag.substr(0, tag.find('-'));
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  if (language.size() < 2 || language.size() > 3 || tag.size() > longest) return false;
  return std::all_of(language.begin(), language.end(), is_letter) && tag.back() != '-' &&
         tag.find("--") == std::string_view::npos &&
         std::all_of(tag.begin(), tag.end(), [](char c) { return is_letter_or_digit(c) || c == '-'; });
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

std::string_view suffix_of(MailPart part) {
  switch (part) {
    case MailPart::subject:
      return ".subject";
    case MailPart::text:
      return ".txt";
    case MailPart::html:
      return ".html";
    case MailPart::partial:
      break;
  }
  return ".mustache";
}

std::vector<std::string> locale_chain(std::string_view locale) {
  auto tag = lower_case(locale.substr(0, locale.find_first_of(".@")));
  std::replace(tag.begin(), tag.end(), '_', '-');
  std::vector<std::string> chain;
  while (is_locale(tag)) {
    chain.push_back(tag);
    tag.resize(std::min(tag.rfind('-'), tag.size()));
    if (tag == chain.back()) break;
  }
  chain.emplace_back();
  return chain;
}

namespace {

std::optional<TemplateFileName> parse_without_suffix(std::string_view name, MailPart part) {
  std::string locale;
  const auto dot = name.rfind('.');
  if (dot != std::string_view::npos && dot > 0) locale = locale_chain(name.substr(dot + 1)).front();
  if (!locale.empty()) name = name.substr(0, dot);
  if (part != MailPart::partial && !is_template_name(name)) return std::nullopt;
  return TemplateFileName{.name = std::string(name), .locale = std::move(locale), .part = part};
}

}  // namespace

std::optional<TemplateFileName> parse_template_file(std::string_view file) {
  for (const auto part : {MailPart::subject, MailPart::text, MailPart::html, MailPart::partial}) {
    if (file.ends_with(suffix_of(part)))
      return parse_without_suffix(file.substr(0, file.size() - suffix_of(part).size()), part);
  }
  return std::nullopt;
}

std::optional<TemplateFileName> parse_example_file(std::string_view file) {
  if (!file.ends_with(example_suffix)) return std::nullopt;
  return parse_without_suffix(file.substr(0, file.size() - example_suffix.size()), MailPart::text);
}

std::string TemplateFiles::path_of(const std::string& file) const {
  return (std::filesystem::path(directory) / file).string();
}

TemplateNames TemplateFiles::names() const {
  TemplateNames names;
  for (const auto& [file, text] : texts) {
    const auto parsed = parse_template_file(file);
    if (!parsed) continue;
    const auto [other, is_new] = names[parsed->part][parsed->name].emplace(parsed->locale, file);
    if (!is_new)
      throw Error(ExitCode::configuration,
                  fmt::format("{} and {} are for the same locale", shown_text(path_of(other->second)),
                              shown_text(path_of(file))),
                  "remove one: case does not matter in a locale");
  }
  return names;
}

TemplateFiles read_template_files(const std::string& directory) {
  TemplateFiles files{.directory = directory, .texts = {}, .ignored = {}};
  for (const auto& name : names_in(directory)) {
    if (parse_template_file(name)) {
      const auto path = (std::filesystem::path(directory) / name).string();
      files.texts.emplace(name, read_template_file(path));
    } else if (!name.starts_with('.') && !name.ends_with('~') && !parse_example_file(name)) {
      files.ignored.push_back(name);
    }
  }
  return files;
}

std::string read_template_file(const std::string& path) {
  return SmallFile(path, {"the template", largest_template, directory_hint}).read_all();
}

std::string read_data_file(const std::string& path) {
  return SmallFile(path, {"the data", largest_data, "it is a file with an object of JSON"}).read_all();
}

const std::array<BuiltinTemplate, 6>& builtin_templates() {
  static const std::array<BuiltinTemplate, 6> all{
      {{"activation", MailPart::subject, "activation.subject", "Activate your account\n", false},
       {"activation", MailPart::text, "activation.txt", activation_text, false},
       {"activation", MailPart::html, "activation.html", activation_html, false},
       {"recovery", MailPart::subject, "recovery.subject", "Choose a new password\n", true},
       {"recovery", MailPart::text, "recovery.txt", recovery_text, true},
       {"recovery", MailPart::html, "recovery.html", recovery_html, true}}};
  return all;
}

const BuiltinTemplate* find_builtin(std::string_view name, MailPart part) {
  const auto& all = builtin_templates();
  const auto* const found = std::find_if(all.begin(), all.end(), [&](const auto& builtin) {
    return builtin.name == name && builtin.part == part;
  });
  return found == all.end() ? nullptr : found;
}

}  // namespace mailroom::templates
