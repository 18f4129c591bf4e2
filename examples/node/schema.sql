-- The shop before it had mails.
CREATE TABLE users (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    email        text NOT NULL UNIQUE,
    name         text NOT NULL,
    confirmed_at timestamptz
);

CREATE TABLE sessions (
    id      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL REFERENCES users
);

CREATE TABLE items (
    name  text PRIMARY KEY,
    price numeric(10, 2) NOT NULL,
    stock integer NOT NULL CHECK (stock >= 0)
);
INSERT INTO items VALUES ('book', 12.00, 1), ('lamp', 30.00, 100);

CREATE TABLE orders (
    id      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id uuid NOT NULL REFERENCES users,
    item    text NOT NULL REFERENCES items
);
