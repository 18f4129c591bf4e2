// Quotes by RFC 4180 and RFC 8259, and copies text that needs no quotes as it is.

#include "compose/encoder.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "queue/preconditions.hpp"

namespace mailroom::compose {
namespace {

/// False for characters that JSON escapes (RFC 8259, section 7) and for non-ASCII bytes, which may begin
/// misleading characters.
bool is_plain_json(char c) {
  return c != '"' && c != '\\' && static_cast<unsigned char>(c) < 0x7F;
}

/// `text` must be printable.
void append_json_text(std::string& line, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain_json)) {
    line += text;
    return;
  }
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  line += escaped_json(std::move(escaped));
}

bool needs_quotes(char c) {
  return c == ',' || c == '"' || c == '\r' || c == '\n';
}

class CsvEncoder final : public Encoder {
 public:
  void begin(const claim::Lease& /*lease*/) override { line_.clear(); }

  bool add(const claim::TokenRow& row, std::string_view token) override {
    if (token.empty()) throw queue::no_place_in_csv({queue::short_action_name(row.action->name)});
    if (!line_.empty()) line_ += ',';
    append_format(line_, "{}", row.action->number);
    append(row.email);
    append(row.login);
    line_ += ',';
    line_ += token;
    append(row.code);
    return true;
  }

  std::string_view finish() override {
    line_ += '\n';
    return line_;
  }

 private:
  void append(std::string_view value) {
    line_ += ',';
    append_csv_value(line_, value);
  }

  std::string line_;
};

class JsonlEncoder final : public Encoder {
 public:
  void begin(const claim::Lease& lease) override {
    // clear() instead of an assignment keeps the capacity.
    line_.clear();
    append_format(line_, "{{\"batch\":{},\"queue\":\"", lease.batch);
    append_json_text(line_, lease.queue);
    line_ += "\",\"tokens\":[";
    is_first_ = true;
    has_messages_ = false;
  }

  bool add(const claim::TokenRow& row, std::string_view token) override {
    const auto before = line_.size();
    append(row, token);
    const bool has_messages = has_messages_ || row.content != nullptr;
    if (has_messages && !is_first_ && line_.size() > longest_line) {
      line_.resize(before);
      return false;
    }
    is_first_ = false;
    has_messages_ = has_messages;
    return true;
  }

  std::string_view finish() override {
    line_ += "]}\n";
    return line_;
  }

 private:
  void append(const claim::TokenRow& row, std::string_view token) {
    if (!is_first_) line_ += ',';
    append_format(line_, "{{\"id\":{},\"action\":\"{}\"", row.id, row.action->name);
    append("email", row.email);
    append("login", row.login);
    append("token", token);
    append("code", row.code);
    append_format(line_, ",\"expires_at\":{}", row.expires_at);
    if (row.content != nullptr) append(*row.content, row.recipient);
    line_ += '}';
  }

  void append(std::string_view name, std::string_view value) {
    append_format(line_, ",\"{}\":\"", name);
    append_json_text(line_, value);
    line_ += '"';
  }

  /// The message of a token. What it does not have is left out.
  void append(const claim::MessageContent& message, int recipient) {
    append_format(line_, ",\"message\":{{\"id\":{}", message.id);
    if (recipient > 0) append_format(line_, ",\"recipient\":{}", recipient);
    append_list("recipients", message.recipients);
    append_list("cc", message.cc);
    append_list("bcc", message.bcc);
    append_any("sender", message.sender);
    append_any("reply_to", message.reply_to);
    append_json("headers", message.headers);
    append_any("template", message.template_name.value_or(""));
    append_any("locale", message.locale);
    append_json("data", message.data);
    append_any("subject", message.subject.value_or(""));
    append_any("text", message.text.value_or(""));
    append_any("html", message.html.value_or(""));
    if (message.raw_size) append_format(line_, ",\"raw\":{{\"size\":{}}}", *message.raw_size);
    if (message.return_path) append("return_path", *message.return_path);
    append_any("profile", message.profile);
    append_any("topic", message.topic);
    append_any("reference", message.reference);
    if (message.attachments > 0) append_format(line_, ",\"attachments\":{}", message.attachments);
    line_ += '}';
  }

  void append_list(std::string_view name, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    append_format(line_, ",\"{}\":[", name);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (i > 0) line_ += ',';
      append_json_string(line_, texts[i]);
    }
    line_ += ']';
  }

  void append_any(std::string_view name, std::string_view text) {
    if (text.empty()) return;
    append_format(line_, ",\"{}\":", name);
    append_json_string(line_, text);
  }

  /// JSON of the database, in which misleading characters are escaped.
  void append_json(std::string_view name, std::string_view json) {
    if (json.empty()) return;
    append_format(line_, ",\"{}\":", name);
    line_ += escaped_json(std::string(json));
  }

  std::string line_;
  bool is_first_ = true;  ///< the next token
  bool has_messages_ = false;
};

}  // namespace

std::unique_ptr<Encoder> make_csv_encoder() {
  return std::make_unique<CsvEncoder>();
}

std::unique_ptr<Encoder> make_jsonl_encoder() {
  return std::make_unique<JsonlEncoder>();
}

void append_csv_value(std::string& line, std::string_view value) {
  if (std::none_of(value.begin(), value.end(), needs_quotes)) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

}  // namespace mailroom::compose
