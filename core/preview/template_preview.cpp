// Loads the files of one template alone, so that a defect in another does not matter.

#include "preview/template_preview.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::preview {
namespace {

/// `receipt.example.json:3: the data is not valid JSON at byte 40`: the place that the parser stopped at.
std::string data_problem(const std::string& data, const std::string& file, const std::string& reason) {
  const auto name = file.empty() ? std::string("the data") : shown_text(file);
  try {
    const auto parsed = parse_json(data);
  } catch (const nlohmann::json::parse_error& error) {
    return fmt::format("{}:{}: {}", name, line_of(data, std::min(error.byte, data.size())), reason);
  } catch (const nlohmann::json::exception&) {
  }
  return fmt::format("{}: {}", name, reason);
}

/// Fills in what the parser of data has against it; false if it has something.
bool check_data(PreviewResult& result) {
  const auto parsed = templates::parse_template_data(result.data);
  const auto* const refusal = std::get_if<mail::Refusal>(&parsed);
  if (refusal != nullptr) result.problem = data_problem(result.data, result.data_from, refusal->reason);
  return refusal == nullptr;
}

}  // namespace

TemplatePreview::TemplatePreview(TemplatePreviewOptions options)
    : options_(std::move(options)), catalogue_(options_.directory) {}

std::string TemplatePreview::title() const {
  return options_.directory.empty() ? "built-in templates" : shown_text(options_.directory);
}

bool TemplatePreview::is_message(const std::string& item) const {
  return options_.message && item == options_.message->title();
}

std::vector<PreviewItem> TemplatePreview::items() {
  std::vector<PreviewItem> items;
  if (options_.message) {
    const auto& message = *options_.message;
    items.push_back({.id = message.title(),
                     .title = message.title(),
                     .note = message.template_name().empty() ? "content of its own" : message.template_name(),
                     .locales = {message.locale()}});
  }
  for (auto& entry : catalogue_.entries())
    items.push_back({.id = entry.name,
                     .title = entry.name,
                     .locales = std::move(entry.locales),
                     .problem = std::move(entry.problem)});
  return items;
}

compose::MailWriter TemplatePreview::writer(templates::TemplateSet templates) const {
  return {options_.from, mail::MessageBuilder(options_.from, options_.reply_to, options_.headers),
          std::make_shared<const templates::TemplateSet>(std::move(templates)), options_.link,
          options_.max_size};
}

TemplatePreview::Written TemplatePreview::write(const PreviewRequest& request, PreviewResult& result) {
  if (request.data) {
    result.data = *request.data;
  } else if (auto example = catalogue_.example_of(request.item, request.locale)) {
    result.data = std::move(example->text);
    result.data_from = std::move(example->file);
  }
  templates::TemplateSet templates(catalogue_.files_of(request.item));
  for (const auto& warning : templates.warnings()) {
    // Those of the built-in templates are in every set.
    if (warning.find(request.item) != std::string::npos) result.warnings.push_back(warning);
  }
  if (!check_data(result)) return mail::Refusal{result.problem};
  auto draft = options_.draft(request.item, request.locale);
  draft.data = result.data;
  draft.content.queue = "mailroom";
  draft.content.key = "0000000000000000";
  const auto to = mail::parse_address(draft.values.email);
  if (const auto* refusal = std::get_if<mail::Refusal>(&to)) return *refusal;
  const auto& address = std::get<mail::Address>(to);
  draft.content.to = {{.name = "", .address = address}};
  return writer(std::move(templates)).write(std::move(draft), address);
}

TemplatePreview::Written TemplatePreview::write_message(const PreviewRequest& request,
                                                        PreviewResult& result) {
  const auto& message = *options_.message;
  result.data = request.data.value_or(message.data());
  if (!request.data && !result.data.empty()) result.data_from = message.title();
  const auto& name = message.template_name();
  templates::TemplateSet templates(name.empty() ? templates::TemplateFiles{} : catalogue_.files_of(name));
  if (!check_data(result)) return mail::Refusal{result.problem};
  return message.write(writer(std::move(templates)), options_.token, result.data);
}

PreviewResult TemplatePreview::show(const PreviewRequest& request) {
  PreviewResult result;
  try {
    auto written = is_message(request.item) ? write_message(request, result) : write(request, result);
    if (const auto* refusal = std::get_if<mail::Refusal>(&written)) {
      result.problem = refusal->reason;
    } else {
      auto& mail = std::get<compose::WrittenMail>(written);
      result.mail = std::make_shared<const MailView>(read_mail(std::move(mail.message)));
    }
  } catch (const Error& error) {
    result.problem = error.what();
    result.hint = error.hint();
  }
  return result;
}

}  // namespace mailroom::preview
