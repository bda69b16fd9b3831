"""UUIDs as the radio's module has them."""


class UUID:
    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UUID) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)
