// Leaves out of a list what the page can tell by itself: it has thousands of entries.

#include "preview/preview_json.hpp"

#include "base/json.hpp"

namespace mailroom::preview {
namespace {

nlohmann::json mail_json(const NumberedMail& shown) {
  const auto& mail = *shown.mail;
  auto headers = nlohmann::json::array();
  for (const auto& [name, value] : mail.headers)
    headers.push_back({name, value});
  auto files = nlohmann::json::array();
  for (const auto& file : mail.files)
    files.push_back({{"name", file.name},
                     {"type", file.type},
                     {"size", file.bytes.size()},
                     {"within", !file.content_id.empty()}});
  return {{"id", shown.id},
          {"subject", mail.subject},
          {"headers", std::move(headers)},
          {"text", optional_json<nlohmann::json>(mail.text)},
          {"has_html", mail.html.has_value()},
          {"remote", mail.html ? framed_html(mail, false, false).remote : 0},
          {"size", mail.source.size()},
          {"files", std::move(files)}};
}

}  // namespace

std::string list_json(PreviewSource& source, std::uint64_t version) {
  nlohmann::json object{{"title", source.title()}, {"takes_data", source.takes_data()}, {"version", version}};
  auto items = nlohmann::json::array();
  for (auto& item : source.items()) {
    nlohmann::json entry{{"id", std::move(item.id)}, {"locales", std::move(item.locales)}};
    if (entry["id"] != item.title) entry["title"] = std::move(item.title);
    if (!item.note.empty()) entry["note"] = std::move(item.note);
    if (!item.problem.empty()) entry["problem"] = std::move(item.problem);
    items.push_back(std::move(entry));
  }
  object["items"] = std::move(items);
  return json_text(object);
}

std::optional<PreviewRequest> read_request(std::string_view json) {
  const auto wanted = try_parse_json(json);
  if (!wanted.is_object()) return std::nullopt;
  PreviewRequest request{.item = text_at(wanted, "item"), .locale = text_at(wanted, "locale")};
  if (wanted.contains("data")) request.data = text_at(wanted, "data");
  return request;
}

std::string result_json(const PreviewRequest& request, const PreviewResult& result,
                        const std::optional<NumberedMail>& shown, std::uint64_t version) {
  return json_text(nlohmann::json{{"version", version},
                                  {"problem", result.problem},
                                  {"hint", result.hint},
                                  {"warnings", result.warnings},
                                  {"data", result.data},
                                  {"data_from", result.data_from},
                                  {"is_typed", request.data.has_value()},
                                  {"mail", shown ? mail_json(*shown) : nlohmann::json(nullptr)},
                                  {"is_last_good", shown && !result.mail}});
}

}  // namespace mailroom::preview
