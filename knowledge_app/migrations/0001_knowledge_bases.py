import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import agentcms.ids


class Migration(migrations.Migration):
    """Knowledge bases with their documents, indexes and chunks."""

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="KnowledgeBase",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "key",
                    models.CharField(
                        help_text="Used in agents and in the API; cannot be changed.",
                        max_length=40,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9-]*\\Z", "Use lowercase letters, digits and '-'."
                            )
                        ],
                        verbose_name="ID",
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "description",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Tells models when to search this knowledge base.",
                        max_length=2000,
                    ),
                ),
                (
                    "owner_id",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Blank: shared with every team.",
                        max_length=128,
                        verbose_name="team",
                    ),
                ),
                ("embedder", models.CharField(default="local/multilingual", max_length=128)),
                (
                    "chunk_size",
                    models.PositiveIntegerField(
                        default=1000,
                        help_text="The most characters of a chunk.",
                        validators=[
                            django.core.validators.MinValueValidator(100),
                            django.core.validators.MaxValueValidator(8000),
                        ],
                    ),
                ),
                (
                    "chunk_overlap",
                    models.PositiveIntegerField(
                        default=100, help_text="Characters that a chunk may share with the one before it."
                    ),
                ),
                (
                    "filterable",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Keys of the metadata of documents by which searches may be filtered.",
                        verbose_name="filterable keys",
                    ),
                ),
                (
                    "rerank",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The key of a registered function that sorts results again.",
                        max_length=128,
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["name", "key"],
            },
        ),
        migrations.CreateModel(
            name="Document",
            fields=[
                (
                    "id",
                    models.UUIDField(default=agentcms.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "source",
                    models.CharField(
                        choices=[("file", "File"), ("text", "Text"), ("url", "URL")], editable=False, max_length=8
                    ),
                ),
                ("url", models.CharField(blank=True, default="", editable=False, max_length=2000, verbose_name="URL")),
                ("media_type", models.CharField(editable=False, max_length=100)),
                ("content", models.BinaryField(default=b"")),
                ("content_hash", models.CharField(blank=True, default="", editable=False, max_length=64)),
                (
                    "size",
                    models.PositiveIntegerField(default=0, editable=False, help_text="Of the content, in bytes."),
                ),
                ("text", models.TextField(blank=True, default="", editable=False)),
                (
                    "text_hash",
                    models.CharField(
                        blank=True,
                        default="",
                        editable=False,
                        help_text="The content from which the text comes.",
                        max_length=64,
                    ),
                ),
                ("sections", models.JSONField(default=list, editable=False)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Waiting"),
                            ("indexing", "Indexing"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        editable=False,
                        max_length=8,
                    ),
                ),
                ("error", models.TextField(blank=True, default="", editable=False)),
                ("chunk_count", models.PositiveIntegerField(default=0, editable=False)),
                (
                    "done_chunks",
                    models.PositiveIntegerField(default=0, editable=False, help_text="While it is indexed."),
                ),
                (
                    "job_id",
                    models.UUIDField(editable=False, help_text="The only job that may index the document.", null=True),
                ),
                ("created_by_name", models.CharField(blank=True, default="", editable=False, max_length=150)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("indexed_at", models.DateTimeField(editable=False, null=True)),
                (
                    "base",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="documents",
                        to="knowledge_app.knowledgebase",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="KnowledgeIndex",
            fields=[
                (
                    "id",
                    models.UUIDField(default=agentcms.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(editable=False, max_length=128)),
                ("embedder", models.CharField(blank=True, default="", editable=False, max_length=128)),
                (
                    "dimensions",
                    models.PositiveIntegerField(default=0, editable=False, help_text="0 until the first vector."),
                ),
                ("chunk_size", models.PositiveIntegerField(default=0, editable=False)),
                ("chunk_overlap", models.PositiveIntegerField(default=0, editable=False)),
                ("is_building", models.BooleanField(default=False, editable=False)),
                (
                    "has_ann_index",
                    models.BooleanField(
                        default=False,
                        editable=False,
                        help_text="Whether PostgreSQL has an HNSW index for it.",
                        verbose_name="approximate index",
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "base",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="indexes",
                        to="knowledge_app.knowledgebase",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "knowledge indexes",
                "ordering": ["created_at"],
            },
        ),
        migrations.AddField(
            model_name="knowledgebase",
            name="index",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="knowledge_app.knowledgeindex",
            ),
        ),
        migrations.CreateModel(
            name="IndexedDocument",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("source_hash", models.CharField(editable=False, max_length=64)),
                (
                    "document",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="indexed",
                        to="knowledge_app.document",
                    ),
                ),
                (
                    "index",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="indexed_documents",
                        to="knowledge_app.knowledgeindex",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Chunk",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(blank=True, default="", editable=False, max_length=128)),
                ("number", models.PositiveIntegerField(default=0, editable=False)),
                ("text", models.TextField(blank=True, default="", editable=False)),
                ("text_hash", models.CharField(editable=False, max_length=64)),
                ("start", models.PositiveIntegerField(default=0, editable=False)),
                ("end", models.PositiveIntegerField(default=0, editable=False)),
                ("place", models.CharField(blank=True, default="", editable=False, max_length=200)),
                ("metadata", models.JSONField(default=dict, editable=False)),
                ("embedder", models.CharField(blank=True, default="", editable=False, max_length=128)),
                ("scale", models.FloatField(editable=False)),
                ("data", models.BinaryField()),
                ("is_pending", models.BooleanField(default=False, editable=False)),
                (
                    "document",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chunks",
                        to="knowledge_app.document",
                    ),
                ),
                (
                    "index",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chunks",
                        to="knowledge_app.knowledgeindex",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["status"], name="document_status"),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.UniqueConstraint(fields=("base", "name"), name="document_name"),
        ),
        migrations.AddConstraint(
            model_name="knowledgeindex",
            constraint=models.UniqueConstraint(fields=("base", "name"), name="knowledge_index_name"),
        ),
        migrations.AddConstraint(
            model_name="knowledgeindex",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_building", True)), fields=("base",), name="knowledge_index_one_building"
            ),
        ),
        migrations.AddIndex(
            model_name="knowledgebase",
            index=models.Index(fields=["owner_id"], name="knowledge_base_owner"),
        ),
        migrations.AddConstraint(
            model_name="indexeddocument",
            constraint=models.UniqueConstraint(fields=("index", "document"), name="indexed_document"),
        ),
        migrations.AddIndex(
            model_name="chunk",
            index=models.Index(fields=["index", "text_hash"], name="chunk_text_hash"),
        ),
        migrations.AddConstraint(
            model_name="chunk",
            constraint=models.UniqueConstraint(
                condition=models.Q(("document__isnull", False)),
                fields=("index", "document", "number", "is_pending"),
                name="chunk_number",
            ),
        ),
        migrations.AddConstraint(
            model_name="chunk",
            constraint=models.UniqueConstraint(
                condition=models.Q(("document__isnull", True)),
                fields=("index", "key"),
                name="chunk_key_without_document",
            ),
        ),
        migrations.AddConstraint(
            model_name="chunk",
            constraint=models.CheckConstraint(
                condition=models.Q(("end__gte", models.F("start"))), name="chunk_end_after_start"
            ),
        ),
    ]
