// Builds the tree of values while nlohmann's parser reads, which would round the numbers in a tree of its
// own.

#include "templates/template_data.hpp"

#include <fmt/format.h>
#include <optional>

#include "base/json.hpp"
#include "base/wording.hpp"

namespace mailroom::templates {
namespace {

using DataKind = TemplateData::Kind;

class DataReader final : public JsonReader {
 public:
  std::variant<TemplateData, mail::Refusal> result() {
    if (refusal_) return std::move(*refusal_);
    return std::move(root_);
  }

  bool null() override { return add(DataKind::null); }
  bool boolean(bool value) override { return add(DataKind::boolean, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return add(DataKind::number, std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add(DataKind::number, std::to_string(value));
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return add(DataKind::number, text);
  }
  bool string(string_t& value) override {
    if (value.find('\0') != std::string::npos) return refuse("the data has a NUL in a text");
    return add(DataKind::text, std::move(value));
  }
  bool binary(binary_t& /*value*/) override { return refuse("the data is not JSON"); }
  bool start_object(std::size_t /*size*/) override { return open(DataKind::object); }
  bool start_array(std::size_t /*size*/) override { return open(DataKind::list); }
  bool key(string_t& name) override {
    if (name.find('\0') != std::string::npos) return refuse("the data has a NUL in a name");
    name_ = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const std::string_view words = error.what();
    const auto* const reason = words.find("surrogate") != std::string_view::npos ? ": half a surrogate pair"
                               : words.find("overflow") != std::string_view::npos
                                   ? ": a number that is too large"
                                   : "";
    return refuse(fmt::format("the data is not valid JSON at byte {}{}", position, reason));
  }

 private:
  bool refuse(std::string reason) {
    refusal_ = mail::Refusal{std::move(reason)};
    return false;
  }

  bool add(DataKind kind, std::string text = {}) {
    if (open_.empty() && kind != DataKind::object) return refuse("the data is not a JSON object");
    if (++count_ > most_values)
      return refuse(fmt::format("the data has more than {} values", with_thousands(most_values)));
    added_ = &place();
    *added_ = TemplateData{.kind = kind, .text = std::move(text)};
    return true;
  }

  /// Where the next value belongs. Earlier values of a list may move, of which none is open.
  TemplateData& place() {
    if (open_.empty()) return root_;
    auto& parent = *open_.back();
    return parent.kind == DataKind::list ? parent.items.emplace_back() : parent.members[name_];
  }

  bool open(DataKind kind) {
    if (open_.size() == deepest_value)
      return refuse(fmt::format("the data is nested more than {} deep", deepest_value));
    if (!add(kind)) return false;
    open_.push_back(added_);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  TemplateData root_;
  std::optional<mail::Refusal> refusal_;
  std::vector<TemplateData*> open_;
  TemplateData* added_ = nullptr;
  std::string name_;  ///< of the next value of an object
  std::size_t count_ = 0;
};

}  // namespace

bool TemplateData::is_true() const {
  switch (kind) {
    case DataKind::null:
      return false;
    case DataKind::boolean:
      return text == "true";
    case DataKind::number:
      return text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != std::string::npos;
    case DataKind::text:
      return !text.empty();
    case DataKind::list:
      return !items.empty();
    case DataKind::object:
      break;
  }
  return true;
}

std::variant<TemplateData, mail::Refusal> parse_template_data(std::string_view json) {
  if (json.empty()) return TemplateData{};
  if (json.size() > largest_data)
    return mail::Refusal{fmt::format("the data has {} bytes, at most {} are allowed",
                                     with_thousands(static_cast<std::int64_t>(json.size())),
                                     with_thousands(largest_data))};
  DataReader reader;
  read_json(json, reader);
  return reader.result();
}

}  // namespace mailroom::templates
