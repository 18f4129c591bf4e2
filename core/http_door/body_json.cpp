// The parser tells value by value; the tree is made here.

#include "http_door/body_json.hpp"

#include <fmt/format.h>
#include <set>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace mailroom::http_door {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_depth = 32;

class TreeReader : public JsonReader {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    auto* const at = open_.empty() ? nullptr : &open_.back();
    if (at != nullptr && value <= 255 &&
        (at->value.is_binary() || (at->value.is_array() && at->value.empty()))) {
      if (!at->value.is_binary()) at->value = Json::binary({});
      at->value.get_binary().push_back(static_cast<std::uint8_t>(value));
      return true;
    }
    return add(value);
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return begin(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return begin(Json::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    auto& at = open_.back();
    if (at.value.contains(name))
      return refuse(fmt::format("the member `{}` comes twice", name.substr(0, 100)));
    at.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t place, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    return refuse(fmt::format("it is no JSON from octet {} on", place));
  }

  Json root{};
  std::string problem{};

 private:
  struct Open {
    Json value;
    std::string key{};  ///< of the member that comes
  };

  bool refuse(std::string words) {
    if (problem.empty()) problem = std::move(words);
    return false;
  }

  bool begin(Json value) {
    if (open_.size() >= most_depth) return refuse(fmt::format("it is nested more than {} deep", most_depth));
    open_.push_back({.value = std::move(value)});
    return true;
  }

  bool end() {
    auto value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  bool add(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return true;
    }
    auto& at = open_.back();
    if (at.value.is_object()) {
      at.value[std::exchange(at.key, {})] = std::move(value);
      return true;
    }
    // It is no file after all.
    if (at.value.is_binary()) {
      auto numbers = Json::array();
      for (const auto octet : at.value.get_binary())
        numbers.push_back(octet);
      at.value = std::move(numbers);
    }
    at.value.push_back(std::move(value));
    return true;
  }

  std::vector<Open> open_;
};

}  // namespace

std::variant<Json, BodyProblem> read_body(std::string_view text) {
  TreeReader reader;
  read_json(text, reader);
  if (!reader.problem.empty()) return BodyProblem{"the body cannot be read: " + reader.problem};
  return std::move(reader.root);
}

}  // namespace mailroom::http_door
