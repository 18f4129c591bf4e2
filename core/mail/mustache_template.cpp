// The only user of kainjow's Mustache. Variables and partials are looked up in maps of their own.

#include "mail/mustache_template.hpp"

#include <kainjow/mustache.hpp>
#include <stdexcept>
#include <utility>

namespace mailroom {
namespace {

using Value = kainjow::mustache::data;
using ValueByName = std::map<std::string, Value>;

const Value* find_in(const ValueByName& all, const std::string& name) {
  const auto found = all.find(name);
  if (found == all.end()) throw std::logic_error("a template has an unknown name: " + name);
  return &found->second;
}

/// Looks variables and partials up in different maps: the library's own context would take the value of a
/// variable for the partial of that name, and parse it.
class SeparateNames final : public kainjow::mustache::basic_context<std::string> {
 public:
  SeparateNames(const ValueByName& variables, const ValueByName& partials)
      : variables_(variables), partials_(partials) {}

  // A section adds no names: no value has any below it.
  void push(const Value* /*data*/) override {}
  void pop() override {}
  const Value* get(const std::string& name) const override { return find_in(variables_, name); }
  const Value* get_partial(const std::string& name) const override { return find_in(partials_, name); }

 private:
  const ValueByName& variables_;
  const ValueByName& partials_;
};

/// What the library takes for a stream; an std::ostringstream costs a copy.
struct Collected {
  std::string text;

  Collected& operator<<(const std::string& piece) {
    text += piece;
    return *this;
  }
};

std::string unescaped(const std::string& text) {
  return text;
}

}  // namespace

struct MustacheValues::Data {
  ValueByName by_name;
};

MustacheValues::MustacheValues(const TemplateVariables& variables) : data_(std::make_unique<Data>()) {
  // The library takes an empty text for true.
  for (const auto& [name, text] : variables)
    data_->by_name.emplace_hint(data_->by_name.end(), name,
                                text.empty() ? Value(Value::type::bool_false) : Value(text));
}

MustacheValues::~MustacheValues() = default;

struct MustacheTemplate::Parsed {
  kainjow::mustache::mustache program;
  ValueByName partials;
};

MustacheTemplate::MustacheTemplate(const std::string& text, Escape escape,
                                   const std::map<std::string, std::string>& partials)
    : parsed_(std::make_unique<Parsed>(Parsed{kainjow::mustache::mustache(text), {}})) {
  auto& program = parsed_->program;
  if (!program.is_valid()) throw std::invalid_argument(program.error_message());
  program.set_custom_escape(escape == Escape::html ? escaped_html : unescaped);
  for (const auto& [name, partial] : partials)
    parsed_->partials.emplace(name, Value(partial));
}

MustacheTemplate::~MustacheTemplate() = default;
MustacheTemplate::MustacheTemplate(MustacheTemplate&&) noexcept = default;
MustacheTemplate& MustacheTemplate::operator=(MustacheTemplate&&) noexcept = default;

std::string MustacheTemplate::render(const MustacheValues& values) const {
  SeparateNames names(values.data_->by_name, parsed_->partials);
  Collected result;
  parsed_->program.render(names, result);
  if (!parsed_->program.is_valid()) throw std::logic_error(parsed_->program.error_message());
  return std::move(result.text);
}

std::string escaped_html(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace mailroom
