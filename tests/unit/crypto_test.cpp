#include <algorithm>
#include <fmt/format.h>
#include <random>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "crypto/base64.hpp"
#include "crypto/hmac.hpp"
#include "crypto/key.hpp"
#include "crypto/key_ring.hpp"
#include "crypto/token.hpp"
#include "support/actions.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::crypto_test {
namespace {

const std::string dead_beef = "deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef";
const std::string cafe_babe = "cafebabecafebabecafebabecafebabecafebabecafebabecafebabecafebabe";

crypto::Key key_of(const std::string& hex) {
  return crypto::Key::from_hex(hex, "a test");
}

std::string hex_of(const crypto::Digest& digest) {
  std::string text;
  for (const auto byte : digest)
    text += fmt::format("{:02x}", byte);
  return text;
}

crypto::Secret secret_of(const std::string& hex) {
  return key_of(hex).bytes();
}

std::string text_of(const crypto::TokenText& token) {
  return {token.begin(), token.end()};
}

struct Vector {
  std::string comment, key, action, secret, code, token;
  bool valid;
};

std::vector<Vector> read_vectors() {
  const auto text = [](const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? std::string{} : found->get<std::string>();
  };
  std::vector<Vector> vectors;
  for (const auto& object : parse_json(read_file(source_directory + "/tests/vectors/tokens.json"))) {
    vectors.push_back({text(object, "comment"), text(object, "key"), text(object, "action"),
                       text(object, "secret"), text(object, "code"), text(object, "token"),
                       object.at("valid").get<bool>()});
  }
  return vectors;
}

std::optional<crypto::GenuineToken> judge(const Vector& vector, bool search) {
  const auto token = crypto::decode_token(vector.token);
  if (!token) return std::nullopt;
  crypto::Verifier verifier({key_of(vector.key), {}}, queue::Actions::built_in().signed_paths());
  if (search || vector.code.empty()) return verifier.verify(*token, std::nullopt, search);
  return verifier.verify(*token, vector.code, false);
}

}  // namespace

TEST_CASE("HMAC-SHA256 agrees with RFC 4231") {
  // The keys of the RFC as 32 bytes: shorter keys are padded with zeros, keys longer than a block are hashed.
  struct Case {
    std::string key, message, digest;
  };
  const auto hashed = "45ad4b37c6e2fc0a2cfcc1b5da524132ec707615c2cae1dbbc43c97aa521db81";
  const std::vector<Case> cases{
      {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b000000000000000000000000", "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"4a65666500000000000000000000000000000000000000000000000000000000", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa000000000000000000000000", std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {"0102030405060708090a0b0c0d0e0f1011121314151617181900000000000000", std::string(50, '\xcd'),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {"0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c000000000000000000000000", "Test With Truncation",
       "a3b6167473100ee06e0c796c2955552bfa6f7c0a6a8aef8b93f860aab0cd20c5"},
      {hashed, "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {hashed,
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs "
       "to "
       "be hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const auto& [key, message, digest] : cases) {
    crypto::Hmac hmac(key_of(key));
    CHECK(hex_of(hmac.digest({message})) == digest);
    const auto half = message.size() / 2;
    CHECK(hex_of(hmac.digest({message.substr(0, half), {}, message.substr(half)})) == digest);
  }
}

TEST_CASE("an HMAC keeps its key between messages and when it is moved") {
  crypto::Hmac first(key_of(dead_beef));
  crypto::Hmac other(key_of(cafe_babe));
  const auto expected = first.digest({"a"});
  CHECK_FALSE(crypto::equal_in_constant_time(other.digest({"a"}), expected));
  CHECK_FALSE(crypto::equal_in_constant_time(first.digest({"b"}), expected));
  crypto::Hmac moved(std::move(first));
  CHECK(crypto::equal_in_constant_time(moved.digest({"a"}), expected));
  other = std::move(moved);
  CHECK(crypto::equal_in_constant_time(other.digest({"a"}), expected));
}

TEST_CASE("base64url decodes what it encoded, and encodes as in RFC 4648") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"},
  };
  for (const auto& [plain, expected] : cases) {
    const std::vector<std::uint8_t> bytes(plain.begin(), plain.end());
    std::string text(crypto::base64url_length(bytes.size()), '?');
    crypto::encode_base64url(bytes, text);
    CHECK(text == expected);
  }
  std::mt19937 random(20240229);
  std::uniform_int_distribution<int> any_byte(0, 255);
  for (std::size_t round = 0; round < 2000; ++round) {
    std::vector<std::uint8_t> bytes(round % 70);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(any_byte(random)); });
    std::string text(crypto::base64url_length(bytes.size()), '?');
    crypto::encode_base64url(bytes, text);
    std::vector<std::uint8_t> back(bytes.size());
    REQUIRE(crypto::decode_base64url(text, back));
    REQUIRE(back == bytes);
  }
}

TEST_CASE("base64url refuses all spellings but one") {
  std::array<std::uint8_t, 2> bytes{};
  CHECK(crypto::decode_base64url("-_8", bytes));
  for (const std::string text : {"", "-_", "-_8=", "-_8A", "+/8", "-_9", "-_+", " _8", "-_\n", "-_\xe9"}) {
    INFO(text);
    CHECK_FALSE(crypto::decode_base64url(text, bytes));
  }
}

TEST_CASE("every published token is verified correctly") {
  const auto vectors = read_vectors();
  REQUIRE(vectors.size() >= 20);
  for (const auto& vector : vectors) {
    INFO(vector.comment << ' ' << vector.token);
    const auto verdict = judge(vector, false);
    REQUIRE(verdict.has_value() == vector.valid);
    if (!vector.valid) continue;
    const auto action = vector.action == "activation" ? activation_action() : recovery_action();
    CHECK(verdict->path == action->path);
    CHECK(verdict->code == (action == activation_action() ? "" : vector.code));
    CHECK(verdict->is_current_key);
    crypto::Hmac hmac(key_of(vector.key));
    CHECK(text_of(queue::sign_token(hmac, *action, secret_of(vector.secret), vector.code)) == vector.token);
  }
}

TEST_CASE("the search finds the code of every published recovery token, even if another code was given") {
  int found = 0;
  for (const auto& vector : read_vectors()) {
    if (vector.action != "password_recovery") continue;
    const auto verdict = judge(vector, true);
    REQUIRE(verdict);
    CHECK(verdict->code == vector.code);
    ++found;
  }
  CHECK(found >= 5);
}

TEST_CASE("the search covers the first and the last code, and no other kind of code") {
  crypto::Hmac hmac(key_of(dead_beef));
  const auto search = [&](std::string_view code) {
    const auto text = queue::sign_token(hmac, *recovery_action(), crypto::Secret{1, 2, 3}, code);
    return crypto::find_code(hmac, crypto::decode_token({text.data(), text.size()}).value(), "/recover");
  };
  CHECK(search("00000") == "00000");
  CHECK(search("99999") == "99999");
  CHECK(search("40302") == "40302");
  CHECK_FALSE(search("100000"));
  CHECK_FALSE(search("1"));
}

TEST_CASE("one changed bit anywhere makes a token invalid") {
  crypto::Hmac hmac(key_of(cafe_babe));
  const auto text = queue::sign_token(hmac, *activation_action(), crypto::Secret{}, {});
  const auto genuine = crypto::decode_token({text.data(), text.size()}).value();
  REQUIRE(crypto::is_signed(hmac, genuine, "/activate", {}));
  for (std::size_t bit = 0; bit < 8 * (crypto::secret_size + crypto::digest_size); ++bit) {
    auto changed = genuine;
    auto& byte = bit < 256 ? changed.secret[bit / 8] : changed.signature[(bit - 256) / 8];
    byte = static_cast<std::uint8_t>(byte ^ (1U << (bit % 8)));
    REQUIRE_FALSE(crypto::is_signed(hmac, changed, "/activate", {}));
  }
}

TEST_CASE("a verifier tries every key of the ring and reports which one matched") {
  const crypto::Key current = key_of(dead_beef);
  const crypto::Key previous = key_of(cafe_babe);
  const crypto::Key oldest = key_of(std::string(64, '7'));
  crypto::Verifier verifier({current, {previous, oldest}}, queue::Actions::built_in().signed_paths());
  const auto verify = [&](const crypto::Key& key, const queue::Action* action,
                          std::optional<std::string_view> code, bool search) {
    crypto::Hmac hmac(key);
    const auto text = queue::sign_token(hmac, *action, crypto::Secret{9}, "00042");
    return verifier.verify(crypto::decode_token({text.data(), text.size()}).value(), code, search);
  };
  for (const crypto::Key* key : {&current, &previous, &oldest}) {
    const auto activation = verify(*key, activation_action(), "99999", false);
    const auto recovery = verify(*key, recovery_action(), "00042", false);
    const auto searched = verify(*key, recovery_action(), std::nullopt, true);
    for (const auto& verdict : {activation, recovery, searched}) {
      REQUIRE(verdict);
      CHECK(verdict->key_fingerprint == key->fingerprint());
      CHECK(verdict->is_current_key == (key == &current));
    }
    CHECK(activation->path == "/activate");
    CHECK(activation->code.empty());
    CHECK(recovery->path == "/recover");
    CHECK(recovery->code == "00042");
    CHECK(searched->code == "00042");
    CHECK_FALSE(verify(*key, recovery_action(), "00043", true));
    CHECK_FALSE(verify(*key, recovery_action(), std::nullopt, false));
  }
  CHECK_FALSE(verify(key_of(std::string(64, '8')), recovery_action(), std::nullopt, true));
}

TEST_CASE("a verifier knows the paths that it is given, with or without a code, and no other") {
  const auto key = key_of(dead_beef);
  crypto::Hmac hmac(key);
  const auto signed_for = [&](std::string_view path, std::string_view code) {
    const auto text = crypto::sign_token(hmac, path, crypto::Secret{4}, code);
    return crypto::decode_token({text.data(), text.size()}).value();
  };
  crypto::Verifier verifier({key, {}},
                            {{"/activate", false}, {"/magic", false}, {"/unlock", true}, {"/recover", true}});
  CHECK(verifier.verify(signed_for("/magic", {}), std::nullopt, false)->path == "/magic");
  CHECK(verifier.verify(signed_for("/magic", {}), "12345", false)->code.empty());
  CHECK(verifier.verify(signed_for("/unlock", "00007"), "00007", false)->path == "/unlock");
  const auto searched = verifier.verify(signed_for("/recover", "00007"), std::nullopt, true);
  REQUIRE(searched);
  CHECK(searched->path == "/recover");
  CHECK(searched->code == "00007");
  CHECK_FALSE(verifier.verify(signed_for("/unlock", "00007"), "00008", true));
  CHECK_FALSE(verifier.verify(signed_for("/unlock", {}), std::nullopt, true));
  CHECK_FALSE(verifier.verify(signed_for("/other", {}), std::nullopt, true));
}

}  // namespace mailroom::test::crypto_test
