// Derives the message id from batch, number and tokens, so that every attempt at a line has the same one.

#include "compose/line_composer.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <utility>

#include "base/encoded_text.hpp"
#include "base/text.hpp"
#include "crypto/digest.hpp"

namespace mailroom::compose {
namespace {

constexpr std::size_t id_digest_size = 16;

}  // namespace

std::string message_id_of(const claim::Lease& lease, int line, std::string_view signed_text) {
  const auto digest = crypto::sha256({signed_text});
  return fmt::format("{}.{}.{}.{}", percent_encoded(lease.queue, "-_"), lease.batch, line,
                     hex_text(std::span(digest).first(id_digest_size)));
}

int LineComposer::begin(const claim::Lease& lease, int limit) {
  lease_ = lease;
  limit_ = limit;
  lines_ = 0;
  tokens_.clear();
  return limit;
}

delivery::Composer::Added LineComposer::add(const claim::TokenRow& row, std::string_view token,
                                            delivery::DeliveryHistory history) {
  std::optional<delivery::Composed> full;
  if (tokens_.empty()) begin_line();
  if (!encoder_->add(row, token)) {
    full = finish();
    begin_line();
    encoder_->add(row, token);
  }
  std::string text(token);
  const auto& action = row.action->name;
  if (tokens_.empty()) action_ = action;
  if (action_ != action) action_ = "mixed";
  append_format(signed_text_, "{} {}\n", row.id, text);
  tokens_.push_back({.history = std::move(history), .text = std::move(text), .dated = row.created_at});
  // A line that had to end has others than this token, so this one does not fill the next.
  if (full) return *std::move(full);
  if (static_cast<int>(tokens_.size()) < limit_) return {};
  return *finish();
}

void LineComposer::begin_line() {
  encoder_->begin(lease_);
  signed_text_.clear();
}

std::optional<delivery::Composed> LineComposer::finish() {
  if (tokens_.empty()) return std::nullopt;
  delivery::Composed composed;
  const auto encoded = encoder_->finish();
  composed.bytes = encoded.substr(0, encoded.size() - 1);
  composed.tokens = std::exchange(tokens_, {});
  auto& message = composed.message;
  message.queue = lease_.queue;
  message.line = ++lines_;
  message.action = action_;
  message.message_id = message_id_of(lease_, message.line, signed_text_);
  for (const auto& token : composed.tokens) {
    message.tokens.push_back(token.history.token);
    message.created_at = std::max(message.created_at, token.dated);
  }
  return composed;
}

}  // namespace mailroom::compose
