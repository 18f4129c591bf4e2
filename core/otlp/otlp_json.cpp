// Written by hand: a sender makes three spans a mail, and a tree of JSON values, or a format string for each
// part, takes several times as long.

#include "otlp/otlp_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <tuple>

#include "base/json.hpp"

namespace mailroom::otlp {
namespace {

constexpr int status_error = 2;

void append_number(std::string& out, std::int64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

template <typename Id>
void append_hex(std::string& out, const Id& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<char, 2 * std::tuple_size_v<Id>> text{};
  for (std::size_t i = 0; i < id.size(); ++i) {
    text[2 * i] = digits[id[i] >> 4U];
    text[2 * i + 1] = digits[id[i] & 15U];
  }
  out.append(text.data(), text.size());
}

/// What needs no escape is copied as it is.
void append_quoted(std::string& out, std::string_view text) {
  const bool is_plain =
      std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (is_plain) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  out += ascii_json(nlohmann::json(std::string(text)));
}

/// What comes before the value of an attribute, put together at compile time.
template <std::size_t size>
struct AttributeBegin {
  std::array<char, size> text{};
  constexpr operator std::string_view() const { return {text.data(), text.size()}; }
};

template <std::size_t name_size, std::size_t type_size>
consteval auto begin_of(const char (&name)[name_size], const char (&type)[type_size]) {
  constexpr std::string_view before = R"(,{"key":")";
  constexpr std::string_view between = R"(","value":{")";
  constexpr std::string_view after = R"(":)";
  AttributeBegin<before.size() + name_size - 1 + between.size() + type_size - 1 + after.size()> begin;
  auto* at = begin.text.data();
  for (const auto part : {before, std::string_view(name), between, std::string_view(type), after})
    at = std::copy(part.begin(), part.end(), at);
  return begin;
}

template <std::size_t size>
consteval auto text_named(const char (&name)[size]) {
  return begin_of(name, "stringValue");
}

template <std::size_t size>
consteval auto number_named(const char (&name)[size]) {
  return begin_of(name, "intValue");
}

/// Nothing without a text.
void append_attribute(std::string& out, std::string_view begin, std::string_view text) {
  if (text.empty()) return;
  out += begin;
  append_quoted(out, text);
  out += "}}";
}

/// Nothing for 0.
void append_attribute(std::string& out, std::string_view begin, std::int64_t number) {
  if (number == 0) return;
  out += begin;
  append_number(out, number);
  out += "}}";
}

/// `relay.example:25` as two attributes; another name as one.
void append_sink(std::string& out, std::string_view sink) {
  static constexpr auto address = text_named("server.address");
  static constexpr auto port_number = number_named("server.port");
  static constexpr auto other = text_named("mailroom.sink");
  const auto colon = sink.rfind(':');
  int port = 0;
  if (colon != std::string::npos) std::from_chars(sink.data() + colon + 1, sink.data() + sink.size(), port);
  const bool is_server = port > 0 && sink.find('/') == std::string_view::npos;
  if (!is_server) return append_attribute(out, other, sink);
  append_attribute(out, address, sink.substr(0, colon));
  append_attribute(out, port_number, port);
}

/// What `mailroom audit` takes: `message:17`, or `token:12`.
void append_name(std::string& out, const trace::Span& span) {
  static constexpr auto name = text_named("messaging.message.id");
  if (span.token == 0) return;
  out += name;
  out += span.message == 0 ? "\"token:" : "\"message:";
  append_number(out, span.message == 0 ? span.token : span.message);
  out += "\"}}";
}

void append_attributes(std::string& out, const trace::Span& span) {
  static constexpr auto queue = text_named("messaging.destination.name");
  static constexpr auto operation = text_named("messaging.operation.name");
  static constexpr auto operation_type = text_named("messaging.operation.type");
  static constexpr auto count = number_named("messaging.batch.message_count");
  static constexpr auto token = number_named("mailroom.token");
  static constexpr auto batch = number_named("mailroom.batch");
  static constexpr auto action = text_named("mailroom.action");
  static constexpr auto outcome = text_named("mailroom.outcome");
  static constexpr auto code = number_named("mailroom.code");
  static constexpr auto error = text_named("error.type");
  out += R"("attributes":[{"key":"messaging.system","value":{"stringValue":"mailroom"}})";
  append_attribute(out, queue, span.queue);
  append_attribute(out, operation, span.operation);
  append_attribute(out, operation_type, span.operation_type);
  append_name(out, span);
  append_attribute(out, count, span.batch_count);
  append_attribute(out, token, span.token);
  append_attribute(out, batch, span.batch);
  append_attribute(out, action, span.action);
  append_attribute(out, outcome, span.outcome);
  append_attribute(out, code, span.code);
  append_sink(out, span.sink);
  if (span.has_failed)
    append_attribute(out, error, span.code == 0 ? span.outcome : std::to_string(span.code));
  out += R"(],"droppedAttributesCount":0)";
}

void append_time(std::string& out, std::string_view key, trace::SpanTime time) {
  out += key;
  append_number(out, time.time_since_epoch().count());
  out += R"(",)";
}

void append_links(std::string& out, const trace::Span& span) {
  out += R"("links":[)";
  bool has_some = false;
  for (const auto& link : span.links) {
    out += has_some ? R"(,{"traceId":")" : R"({"traceId":")";
    has_some = true;
    append_hex(out, link.trace);
    out += R"(","spanId":")";
    append_hex(out, link.span);
    // A link is to what is recorded.
    out += R"(","attributes":[],"droppedAttributesCount":0,"flags":1})";
  }
  out += R"(],"droppedLinksCount":)";
  append_number(out, span.dropped_links);
}

void append_span(std::string& out, const trace::Span& span) {
  out += R"({"traceId":")";
  append_hex(out, span.trace);
  out += R"(","spanId":")";
  append_hex(out, span.id);
  if (span.parent) {
    out += R"(","parentSpanId":")";
    append_hex(out, *span.parent);
  }
  out += R"(","name":)";
  append_quoted(out, std::string(span.operation).append(1, ' ').append(span.queue));
  out += R"(,"kind":)";
  append_number(out, static_cast<int>(span.kind));
  append_time(out, R"(,"startTimeUnixNano":")", span.start);
  append_time(out, R"("endTimeUnixNano":")", std::max(span.start, span.end));
  append_attributes(out, span);
  out += R"(,"events":[],"droppedEventsCount":0,)";
  append_links(out, span);
  out += R"(,"status":{"code":)";
  append_number(out, span.has_failed ? status_error : 0);
  out += "}}";
}

}  // namespace

void append_otlp_json(std::string& out, std::span<const trace::Span> spans, std::string_view resource) {
  out += R"({"resourceSpans":[{"resource":{"attributes":[)"
         R"({"key":"service.name","value":{"stringValue":"mailroom"}},)"
         R"({"key":"service.version","value":{"stringValue":")" MAILROOM_VERSION R"("}})";
  out += resource;
  out += R"(],"droppedAttributesCount":0},)"
         R"("scopeSpans":[{"scope":{"name":"mailroom","version":")" MAILROOM_VERSION R"("},"spans":[)";
  bool has_some = false;
  for (const auto& span : spans) {
    if (has_some) out += ',';
    has_some = true;
    append_span(out, span);
  }
  out += "]}]}]}";
}

}  // namespace mailroom::otlp
