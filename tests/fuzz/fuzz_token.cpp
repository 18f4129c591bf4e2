// A token that is taken is the only text of its bytes; verifying takes any token and code.

#include <array>

#include "base/error.hpp"
#include "crypto/base64.hpp"
#include "crypto/key_ring.hpp"
#include "fuzz/fuzz.hpp"
#include "support/actions.hpp"

namespace mailroom::fuzz::fuzz_token {
namespace {

crypto::Verifier make_verifier() {
  const auto key = [](char digit) {
    return crypto::Key::from_hex(std::string(crypto::key_size * 2, digit), "the test");
  };
  return crypto::Verifier({key('a'), {key('b')}}, queue::Actions::built_in().signed_paths());
}

void decode(std::string_view text, std::string_view code) {
  static crypto::Verifier verifier = make_verifier();
  const auto token = crypto::decode_token(text);
  if (!token) return;
  std::array<std::uint8_t, crypto::secret_size + crypto::digest_size> bytes;
  std::copy(token->signature.begin(), token->signature.end(),
            std::copy(token->secret.begin(), token->secret.end(), bytes.begin()));
  crypto::TokenText again;
  crypto::encode_base64url(bytes, again);
  require(text == std::string_view(again.data(), again.size()), "a token has one text");
  verifier.verify(*token, code, false);
  verifier.verify(*token, std::nullopt, false);
}

/// Bytes to text and back, of any length.
void encode(std::string_view bytes) {
  const std::vector<std::uint8_t> given(bytes.begin(), bytes.end());
  std::string text(crypto::base64url_length(given.size()), '\0');
  crypto::encode_base64url(given, text);
  std::vector<std::uint8_t> read(given.size());
  require(crypto::decode_base64url(text, read) && read == given, "what was encoded is read back");
}

void sign(const queue::Action* action, std::string_view bytes, std::string_view code) {
  static crypto::Verifier verifier = make_verifier();
  static crypto::Hmac hmac(crypto::Key::from_hex(std::string(crypto::key_size * 2, 'b'), "the test"));
  crypto::Secret secret{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), secret.size()), secret.begin());
  const auto text = queue::sign_token(hmac, *action, secret, code);
  const auto token = crypto::decode_token({text.data(), text.size()});
  require(token && token->secret == secret, "a signed token is read back");
  const auto verdict = verifier.verify(*token, code, false);
  require(verdict && verdict->path == action->path && !verdict->is_current_key, "a signed token is genuine");
  auto forged = *token;
  forged.signature[bytes.size() % crypto::digest_size] ^= 1;
  require(!verifier.verify(forged, code, false), "a changed signature is not genuine");
}

void read_key(std::string_view text) {
  try {
    crypto::Key::from_hex(text, "the test");
    require(text.size() == crypto::key_size * 2, "a key has 64 digits");
  } catch (const Error& error) {
    require(error.code() == ExitCode::configuration, "a bad key is an error of the configuration");
  }
}

int run(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto text = fields.take();
  const auto code = fields.take();
  decode(text, code);
  encode(text_of(data, size));
  sign(test::activation_action(), text, code);
  sign(test::recovery_action(), text, code);
  read_key(text);
  return 0;
}

const Target target("token", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_token
