#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "carriers/line_sink.hpp"
#include "consumer/batch_signer.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "support/actions.hpp"

namespace mailroom::fuzz {

/// A batch whose rows are an input's: traits, email, login and code of each.
class HostileBatch {
 public:
  HostileBatch(const std::uint8_t* data, std::size_t size) {
    for (Fields fields(data, size); !fields.is_empty();) {
      const auto traits = fields.take();
      const int bits = traits.empty() ? 0 : traits.front();
      claim::TokenRow row;
      row.id = static_cast<std::int64_t>(rows_.size()) + 1;
      row.action = (bits & 1) != 0 ? test::recovery_action() : test::activation_action();
      if ((bits & 2) == 0) row.secret.emplace().fill(static_cast<std::uint8_t>(bits));
      row.email = fields.take();
      row.login = fields.take();
      row.code = fields.take();
      if (row.code.empty() && (bits & 4) == 0) row.code = "01234";
      row.expires_at = 1'700'000'900;
      rows_.push_back(row);
    }
  }

  /// The rows that must come out, by what a reader of the output needs: decided by another UTF-8 reader than
  /// ours.
  std::vector<claim::TokenRow> sound_rows() const {
    std::vector<claim::TokenRow> sound;
    for (const auto& row : rows_) {
      const bool has_code = !row.action->has_code || row.code.size() == crypto::code_size;
      if (row.secret && has_code && is_line(row.email) && is_line(row.login) && is_line(row.code))
        sound.push_back(row);
    }
    return sound;
  }

  std::size_t size() const { return rows_.size(); }

  void operator()(const std::function<void(const claim::TokenRow&)>& each) const {
    for (const auto& row : rows_)
      each(row);
  }

  /// UTF-8 without control characters.
  static bool is_line(std::string_view text) {
    for (const char c : text) {
      if ((c >= 0 && c < 0x20) || c == 0x7f) return false;
    }
    try {
      // Throws if it is not UTF-8.
      static_cast<void>(nlohmann::json(text).dump());
      return true;
    } catch (const nlohmann::json::type_error&) {
      return false;
    }
  }

 private:
  std::vector<claim::TokenRow> rows_;
};

/// A signer and a sink whose line is kept. One for all inputs, as in a collector.
class Writing {
 public:
  explicit Writing(std::unique_ptr<compose::Encoder> encoder)
      : output_(file_.fd()),
        log_({.level = LogLevel::debug}, log_text_),
        signer_(key(), log_),
        sink_(std::move(encoder), output_) {}

  static constexpr const char* queue = "q,\"\\";
  static crypto::Key key() {
    return crypto::Key::from_hex(std::string(crypto::key_size * 2, 'a'), "the test");
  }

  /// The line without its end, having been checked for being one and for its counts; empty when there is
  /// none.
  std::string line_of(HostileBatch& batch) {
    file_.empty();
    log_text_.str("");
    auto signed_batch = signer_.sign({7, 1, queue}, 1000, std::cref(batch), sink_);
    signer_.finish(signed_batch, sink_);
    const auto& counts = signed_batch.receipt.counts;
    const auto sound = batch.sound_rows().size();
    require(counts.emitted == static_cast<int>(sound), "every sound row is written, and no other");
    require(counts.invalid == static_cast<int>(batch.size() - sound), "every other row counts as invalid");
    const auto log = log_text_.str();
    require(std::count(log.begin(), log.end(), '\n') == counts.invalid,
            "each invalid row is logged on a line");
    auto line = file_.text();
    require(line.empty() == (sound == 0), "there is a line when there is a row");
    if (line.empty()) return line;
    require(line.back() == '\n', "the line has its end");
    line.pop_back();
    require(line.find_first_of("\r\n") == std::string::npos, "there is no line end within the line");
    return line;
  }

 private:
  MemoryFile file_;
  std::ostringstream log_text_;
  Output output_;
  Log log_;
  consumer::BatchSigner signer_;
  carriers::LineSink sink_;
};

/// The token that a row must have been given.
inline std::string token_of(const claim::TokenRow& row) {
  static crypto::Hmac hmac(Writing::key());
  const auto token = queue::sign_token(hmac, *row.action, *row.secret, row.code);
  return {token.begin(), token.end()};
}

}  // namespace mailroom::fuzz
