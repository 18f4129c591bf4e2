// A file comes as base64, or as numbers where an SDK wrote a buffer. Nothing is guessed: a text that looks
// like base64 is base64.

#include "resend_api/attachments.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "crypto/base64.hpp"

namespace mailroom::resend_api {
namespace {

using http_door::Fault;
using http_door::Problem;
using http_door::RemoteFile;
using Json = nlohmann::json;

constexpr std::size_t most_files = 100;

Fault bad(std::size_t place, const std::string& words) {
  return {Problem::bad_attachment, fmt::format("`attachments[{}]` {}", place, words)};
}

/// base64 without blanks and line ends, and with its padding; nullopt if it is none.
std::optional<std::string> tidy_base64(std::string_view text) {
  std::string tidy;
  tidy.reserve(text.size() + 2);
  for (const char c : text)
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') tidy += c;
  const auto padding = tidy.find('=');
  const auto digits = std::min(padding, tidy.size());
  const bool has_alphabet =
      std::all_of(tidy.begin(), tidy.begin() + static_cast<std::ptrdiff_t>(digits),
                  [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '/'; });
  const auto rest = std::string_view(tidy).substr(digits);
  if (!has_alphabet || digits % 4 == 1 || rest.size() > 2 ||
      rest.find_first_not_of('=') != std::string_view::npos)
    return std::nullopt;
  if (!rest.empty() && tidy.size() % 4 != 0) return std::nullopt;
  tidy.append((4 - tidy.size() % 4) % 4, '=');
  return tidy;
}

std::variant<std::string, Fault> read_content(const Json& content, std::size_t place) {
  const auto* octets = &content;
  // JSON of a Buffer of Node.
  if (content.is_object() && content.value("type", "") == "Buffer" && content.contains("data"))
    octets = &content.at("data");
  if (octets->is_binary()) return crypto::base64(octets->get_binary());
  if (octets->is_array() && octets->empty()) return std::string();
  if (octets->is_array()) return bad(place, "has numbers in `content` that are no octets, from 0 to 255");
  if (!content.is_string())
    return bad(place, "has a `content` that is neither base64 nor an array of octets");
  auto tidy = tidy_base64(content.get_ref<const std::string&>());
  if (!tidy) return bad(place, "has a `content` that is not base64");
  return std::move(*tidy);
}

/// By the end of a name, as mail programs show them; an octet stream for others.
std::string_view type_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 24> types{
      {{"pdf", "application/pdf"},
       {"txt", "text/plain"},
       {"csv", "text/csv"},
       {"html", "text/html"},
       {"htm", "text/html"},
       {"ics", "text/calendar"},
       {"json", "application/json"},
       {"xml", "application/xml"},
       {"zip", "application/zip"},
       {"gz", "application/gzip"},
       {"png", "image/png"},
       {"jpg", "image/jpeg"},
       {"jpeg", "image/jpeg"},
       {"gif", "image/gif"},
       {"webp", "image/webp"},
       {"svg", "image/svg+xml"},
       {"mp3", "audio/mpeg"},
       {"mp4", "video/mp4"},
       {"doc", "application/msword"},
       {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
       {"xls", "application/vnd.ms-excel"},
       {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
       {"ppt", "application/vnd.ms-powerpoint"},
       {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"}}};
  const auto dot = name.rfind('.');
  const auto ending = dot == std::string_view::npos ? std::string() : lower_case(name.substr(dot + 1));
  for (const auto& [each, type] : types)
    if (each == ending) return type;
  return "application/octet-stream";
}

/// The text of one of two spellings; a Fault if it is none.
std::variant<std::string, Fault> text_of(const Json& file, const char* name, const char* other,
                                         std::size_t place) {
  for (const auto* each : {name, other}) {
    const auto found = file.find(each);
    if (found == file.end() || found->is_null()) continue;
    if (!found->is_string()) return bad(place, fmt::format("has a `{}` that is no text", each));
    return found->get<std::string>();
  }
  return std::string();
}

std::optional<Fault> read_path(const Json& path, std::size_t place, const std::vector<std::string>& hosts,
                               std::vector<RemoteFile>& remote) {
  if (!path.is_string()) return bad(place, "has a `path` that is no text");
  if (hosts.empty()) return bad(place, "has a `path`, and no host is allowed: send its `content`");
  RemoteFile file{.place = place};
  const auto problem = http_door::problem_of_url(path.get_ref<const std::string&>(), hosts, file);
  if (!problem.empty()) return bad(place, fmt::format("has a `path` that {}", problem));
  remote.push_back(std::move(file));
  return std::nullopt;
}

std::variant<Json, Fault> read_file(const Json& file, std::size_t place,
                                    const std::vector<std::string>& hosts, std::vector<RemoteFile>& remote) {
  if (!file.is_object()) return bad(place, "is no object");
  for (const auto& [name, value] : file.items()) {
    if (!value.is_null() && !is_one_of(name, {"filename", "content", "path", "content_type", "contentType",
                                              "content_id", "contentId", "inline_content_id"}))
      return Fault{Problem::bad_value,
                   fmt::format("`attachments[{}]` has no member `{}`", place, name.substr(0, 100))};
  }
  const auto has = [&](const char* name) { return file.contains(name) && !file.at(name).is_null(); };
  if (has("path") && has("content")) return bad(place, "has both `content` and `path`");
  if (!has("path") && !has("content")) return bad(place, "has no `content`");
  Json result{{"content", ""}};
  if (has("path")) {
    if (auto fault = read_path(file.at("path"), place, hosts, remote)) return std::move(*fault);
  } else {
    auto content = read_content(file.at("content"), place);
    if (auto* fault = std::get_if<Fault>(&content)) return std::move(*fault);
    result["content"] = std::get<std::string>(std::move(content));
  }
  std::array<std::string, 3> texts;
  const std::array<std::pair<const char*, const char*>, 3> spellings{
      {{"filename", "filename"}, {"content_type", "contentType"}, {"content_id", "inline_content_id"}}};
  for (std::size_t i = 0; i < spellings.size(); ++i) {
    auto text = text_of(file, spellings[i].first, spellings[i].second, place);
    if (auto* fault = std::get_if<Fault>(&text)) return std::move(*fault);
    texts[i] = std::get<std::string>(std::move(text));
  }
  if (texts[2].empty() && has("contentId") && file.at("contentId").is_string())
    texts[2] = file.at("contentId").get<std::string>();
  result["name"] = texts[0].empty() ? "attachment" : texts[0];
  result["content_type"] = texts[1].empty() ? std::string(type_of(texts[0])) : texts[1];
  if (!texts[2].empty()) result["content_id"] = texts[2];
  return result;
}

}  // namespace

std::variant<Json, Fault> read_attachments(const Json& files, const std::vector<std::string>& hosts,
                                           std::vector<RemoteFile>& remote) {
  if (!files.is_array() || files.size() > most_files)
    return Fault{Problem::bad_attachment,
                 fmt::format("`attachments` is no array of at most {} files", most_files)};
  auto all = Json::array();
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto file = read_file(files[i], i, hosts, remote);
    if (auto* fault = std::get_if<Fault>(&file)) return std::move(*fault);
    all.push_back(std::get<Json>(std::move(file)));
  }
  return all;
}

}  // namespace mailroom::resend_api
