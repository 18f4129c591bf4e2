// Lines of several tokens, for a program, a server or a broker.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compose/encoder.hpp"
#include "delivery/composer.hpp"

namespace mailroom::compose {

/// Puts the tokens of a batch into lines: the JSON of `collect --format jsonl`.
class LineComposer final : public delivery::Composer {
 public:
  LineComposer() : encoder_(make_jsonl_encoder()) {}

  int begin(const claim::Lease& lease, int limit) override;
  Added add(const claim::TokenRow& row, std::string_view token, delivery::DeliveryHistory history) override;
  std::optional<delivery::Composed> finish() override;

 private:
  void begin_line();

  std::unique_ptr<Encoder> encoder_;
  claim::Lease lease_;
  int limit_ = 0;
  int lines_ = 0;  ///< that were made of the batch
  std::string action_;
  std::string signed_text_;
  std::vector<delivery::ComposedToken> tokens_;
};

/// `queue.batch.line.digest`: the queue with `%XX` for all but letters, digits, `-` and `_`, and 128 bits of
/// the SHA-256 of `signed_text` as 32 hexadecimal digits.
std::string message_id_of(const claim::Lease& lease, int line, std::string_view signed_text);

}  // namespace mailroom::compose
