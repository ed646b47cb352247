"""Pydantic AI in each of its instrumentation formats, with its own test models."""

import os
import sys
import traceback

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from pydantic import BaseModel
from pydantic_ai import Agent, ImageUrl, InstrumentationSettings
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

folder = sys.argv[1]
# Stacks name the folder of this capture.
sys.tracebacklimit = 0


class CountedIds(IdGenerator):
    def __init__(self):
        self.count = 0

    def generate_trace_id(self):
        self.count += 1
        return int("5b8efff798038103" + f"{self.count:016x}", 16)

    def generate_span_id(self):
        self.count += 1
        return int("eee19b7e" + f"{self.count:08x}", 16)


class Forecast(BaseModel):
    city: str
    t: int


exporter = InMemorySpanExporter()
provider = TracerProvider(resource=Resource({"service.name": "capture"}), id_generator=CountedIds())
provider.add_span_processor(SimpleSpanProcessor(exporter))


def capture(name, scenario):
    exporter.clear()
    try:
        scenario()
    except Exception as error:
        print(f"{name}: {error}")
    spans = exporter.get_finished_spans()
    if not spans:
        raise RuntimeError(f"{name}: no spans")
    body = encode_spans(spans).SerializeToString()
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"{name}.pb"), "wb") as file:
        file.write(body)


def weather(city: str) -> dict:
    """Weather of a city."""
    return {"city": city, "t": 21}


def broken(city: str) -> str:
    """A tool that fails."""
    raise ValueError("no such city")


def thinking(messages, info):
    return ModelResponse(parts=[ThinkingPart(content="Paris in May."), TextPart(content="It is sunny.")])


def calling(messages, info):
    if len(messages) > 1:
        return ModelResponse(parts=[TextPart(content="It is sunny.")])
    return ModelResponse(
        parts=[TextPart(content="Let me look."), ToolCallPart(tool_name="weather", args={"city": "Paris"}, tool_call_id="c1")]
    )


def calling_broken(messages, info):
    return ModelResponse(parts=[ToolCallPart(tool_name="broken", args={"city": "Paris"}, tool_call_id="c1")])


for version in map(int, sys.argv[2].split(",")):
    settings = InstrumentationSettings(tracer_provider=provider, version=version, include_content=True)
    Agent.instrument_all(settings)
    agent = dict(name="forecaster", system_prompt="Be brief.")
    capture(f"v{version}-text", lambda: Agent(TestModel(call_tools=[]), **agent).run_sync("Weather in Paris?"))
    capture(f"v{version}-thinking", lambda: Agent(FunctionModel(thinking), **agent).run_sync("Weather in Paris?"))
    capture(
        f"v{version}-tools",
        lambda: Agent(FunctionModel(calling), tools=[weather], **agent).run_sync("Weather in Paris?"),
    )
    capture(
        f"v{version}-output",
        lambda: Agent(TestModel(call_tools=[]), output_type=Forecast, **agent).run_sync("Weather in Paris?"),
    )
    capture(
        f"v{version}-image",
        lambda: Agent(TestModel(call_tools=[]), **agent).run_sync(
            ["What is it?", ImageUrl(url="https://example.com/i.png")]
        ),
    )
    capture(
        f"v{version}-error",
        lambda: Agent(FunctionModel(calling_broken), tools=[broken], **agent).run_sync("Weather in Paris?"),
    )
